#include "worker/ranks/rank_folder.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "common/status.h"
#include "worker/facts/numa.h"
#include "worker/shim/frame.h"
#include "worker/shim/program_path.h"
#include "worker/shim/shim_status.h"

namespace muster::ranks {
namespace {

namespace fs = std::filesystem;

constexpr char kRecordFile[] = "attempt";
constexpr char kAcksFile[] = "acks";
constexpr std::string_view kRecordMagic = "MUSTATTM";
constexpr std::string_view kAcksMagic = "MUSTACKS";
constexpr uint32_t kVersion = 1;

constexpr const char* kBaseVariables[] = {"PATH",  "HOME", "USER",   "LOGNAME",
                                          "SHELL", "LANG", "TMPDIR", "TZ"};

void Set(std::vector<std::pair<std::string, std::string>>& env, const std::string& name,
         const std::string& value) {
  for (auto& variable : env) {
    if (variable.first == name) {
      variable.second = value;
      return;
    }
  }
  env.emplace_back(name, value);
}

absl::Status MakeFolder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) fs::permissions(path, fs::perms::owner_all, error);
  return error ? PosixError("create folder " + path, error.value()) : absl::OkStatus();
}

absl::Status WriteAtomic(const std::string& path, const std::string& content) {
  std::string error;
  if (shim::WriteFileAtomic(path, content, error)) return absl::OkStatus();
  return absl::Status(absl::ErrnoToStatusCode(errno), error);
}

template <typename Message>
absl::StatusOr<Message> Load(const std::string& path, std::string_view magic) {
  std::string error;
  errno = 0;
  const auto file = shim::ReadWholeFile(path, shim::kMaxPayload, error);
  // "Not there" lets the caller clear the folder away: nothing else may look like it.
  if (!file && errno == ENOENT) return absl::NotFoundError(error);
  if (!file) return absl::DataLossError(error);
  const auto payload = shim::DecodeFrame(magic, kVersion, *file, error);
  Message message;
  if (!payload) return absl::DataLossError(path + ": " + error);
  if (!message.ParseFromArray(payload->data(), static_cast<int>(payload->size()))) {
    return absl::DataLossError(path + ": not the message it should be");
  }
  return message;
}

}  // namespace

std::string AttemptFolder(const std::string& state_dir, const v1::AttemptId& id) {
  return state_dir + "/jobs/" + id.controller_id() + "/" + id.job_id() + "/attempt_" +
         std::to_string(id.attempt());
}

std::string RankFolder(const std::string& attempt_folder, uint32_t rank) {
  return attempt_folder + "/" + std::to_string(rank);
}

std::vector<std::pair<std::string, std::string>> BaseEnvironment(const char* const* environment) {
  std::vector<std::pair<std::string, std::string>> base;
  for (; *environment != nullptr; ++environment) {
    const std::string_view variable = *environment;
    const std::string_view name = variable.substr(0, variable.find('='));
    bool wanted = name.starts_with("LC_");
    for (const char* known : kBaseVariables) wanted = wanted || name == known;
    if (wanted && name.size() < variable.size()) {
      base.emplace_back(name, variable.substr(name.size() + 1));
    }
  }
  return base;
}

shim::RankSpec MakeRankSpec(const v1::RankSpec& rank, const NodeEnvironment& node,
                            const std::string& rank_folder) {
  shim::RankSpec spec;
  spec.argv.assign(rank.argv().begin(), rank.argv().end());
  spec.working_dir = rank.working_dir();
  spec.cgroup_procs = node.cgroup_procs;
  spec.quota = node.quota;
  if (rank.has_numa_device()) {
    spec.cpus = facts::CpusToBind(rank.numa_device(), facts::OwnCpus(), node.root);
  }
  // The marker comes first, where a sweep finds it soonest; nothing below may replace it.
  Set(spec.env, "MUSTER_ATTEMPT", node.marker);
  Set(spec.env, "PATH", shim::kDefaultPath);
  for (const auto& [name, value] : node.base) Set(spec.env, name, value);
  for (const v1::EnvVar& variable : rank.env()) Set(spec.env, variable.name(), variable.value());
  Set(spec.env, "MUSTER_ATTEMPT", node.marker);
  Set(spec.env, "TORCHELASTIC_ERROR_FILE", rank_folder + "/" + shim::kErrorFile);
  std::erase_if(spec.env, [](const auto& variable) { return variable.first == "MUSTER_EVENT_FD"; });
  return spec;
}

absl::Status WriteRankFolders(const std::string& attempt_folder, const v1::Desired& wish,
                              const NodeEnvironment& node) {
  absl::Status status = MakeFolder(attempt_folder);
  for (int i = 0; i < wish.ranks_size() && status.ok(); ++i) {
    const std::string folder = RankFolder(attempt_folder, wish.ranks(i).rank());
    // What an attempt of this name left that was never recorded is no use to anyone.
    std::error_code ignored;
    fs::remove_all(folder, ignored);
    status = MakeFolder(folder);
    if (!status.ok()) break;
    const shim::RankSpec spec = MakeRankSpec(wish.ranks(i), node, folder);
    status = WriteAtomic(folder + "/" + shim::kSpecFile, shim::EncodeRankSpec(spec));
  }
  if (!status.ok()) DropAttempt(attempt_folder);
  return status;
}

absl::Status SaveRecord(const std::string& attempt_folder, const worker::AttemptRecord& record) {
  MUSTER_RETURN_IF_ERROR(MakeFolder(attempt_folder));
  return WriteAtomic(attempt_folder + "/" + kRecordFile,
                     shim::EncodeFrame(kRecordMagic, kVersion, record.SerializeAsString()));
}

absl::Status SaveAcks(const std::string& attempt_folder, const worker::AckRecord& acks) {
  return WriteAtomic(attempt_folder + "/" + kAcksFile,
                     shim::EncodeFrame(kAcksMagic, kVersion, acks.SerializeAsString()));
}

absl::StatusOr<worker::AttemptRecord> LoadRecord(const std::string& attempt_folder) {
  return Load<worker::AttemptRecord>(attempt_folder + "/" + kRecordFile, kRecordMagic);
}

worker::AckRecord LoadAcks(const std::string& attempt_folder) {
  // Without them everything is sent once more, which is harmless.
  auto acks = Load<worker::AckRecord>(attempt_folder + "/" + kAcksFile, kAcksMagic);
  return acks.ok() ? *acks : worker::AckRecord();
}

std::vector<std::string> FindAttempts(const std::string& state_dir) {
  std::vector<std::string> found;
  std::error_code error;
  fs::recursive_directory_iterator it(state_dir + "/jobs", error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (it.depth() < 2) continue;
    it.disable_recursion_pending();
    if (it->path().filename().string().starts_with("attempt_")) found.push_back(it->path());
  }
  return found;
}

void DropAttemptFiles(const std::string& attempt_folder) {
  std::error_code error;
  for (fs::directory_iterator it(attempt_folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().filename() == kRecordFile) continue;
    std::error_code ignored;
    fs::remove_all(it->path(), ignored);
  }
}

void DropAttempt(const std::string& attempt_folder) {
  std::error_code error;
  fs::remove_all(attempt_folder, error);
  // The job's and the controller's folder, as far as they are empty.
  fs::path parent = fs::path(attempt_folder).parent_path();
  for (int i = 0; i < 2 && fs::remove(parent, error); ++i) parent = parent.parent_path();
}

}  // namespace muster::ranks
