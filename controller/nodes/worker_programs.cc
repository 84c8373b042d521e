#include "controller/nodes/worker_programs.h"

#include <sys/utsname.h>
#include <zlib.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "common/sha256.h"
#include "common/status.h"

namespace muster::nodes {
namespace {

constexpr const char* kShim = "muster-shim";
constexpr const char* kMusterd = "musterd";

std::string OwnArch() {
  utsname info{};
  uname(&info);
  return static_cast<const char*>(info.machine);
}

absl::StatusOr<std::string> ReadProgram(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in.is_open() || in.bad() || bytes.empty()) return PosixError("read " + path);
  return bytes;
}

// In gzip's format, for speed: hundreds of hosts unpack it, and it is made while they log in.
absl::StatusOr<std::string> Gzip(const std::string& bytes) {
  z_stream z{};
  constexpr int kGzipWindow = 15 + 16;
  if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
    return absl::InternalError("deflateInit2 failed");
  }
  std::string out(deflateBound(&z, bytes.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  const int result = deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  if (result != Z_STREAM_END) return absl::InternalError("deflate failed");
  out.shrink_to_fit();
  return out;
}

}  // namespace

WorkerPrograms::WorkerPrograms(std::string musterd) : musterd_(std::move(musterd)) {}

std::string WorkerPrograms::Folder(const std::string& arch) const {
  const std::filesystem::path own = std::filesystem::path(musterd_).parent_path();
  if (arch == OwnArch()) return own.string();
  return (own.parent_path() / "libexec" / "muster" / arch).string();
}

void WorkerPrograms::LookForBuilds() {
  std::vector<std::string> archs = {OwnArch()};
  std::error_code error;
  const std::string others = std::filesystem::path(Folder("other")).parent_path();
  for (const auto& entry : std::filesystem::directory_iterator(others, error)) {
    if (entry.is_directory(error) && entry.path().filename() != archs[0]) {
      archs.push_back(entry.path().filename());
    }
  }
  for (const std::string& arch : archs) {
    const std::string folder = Folder(arch) + "/";
    const auto shim = ReadProgram(folder + kShim);
    const auto musterd = ReadProgram(folder + kMusterd);
    if (!shim.ok() || !musterd.ok()) continue;
    sums_[folder + kShim] = Sha256(*shim);
    sums_[folder + kMusterd] = Sha256(*musterd);
    builds_.push_back({.arch = arch,
                       .checksum = ToHex(Sha256(*shim + *musterd)),
                       .bytes = shim->size() + musterd->size()});
  }
}

const std::vector<WorkerBuild>& WorkerPrograms::Builds() {
  absl::MutexLock lock(&mutex_);
  if (!std::exchange(looked_, true)) LookForBuilds();
  return builds_;
}

absl::StatusOr<std::shared_ptr<const std::string>> WorkerPrograms::Content(const std::string& arch,
                                                                           const std::string& file,
                                                                           bool gzip) {
  const std::string folder = Folder(arch);
  const std::string path = folder + "/" + file;
  absl::MutexLock lock(&mutex_);
  const auto sum = sums_.find(path);
  if (sum == sums_.end()) {
    return absl::FailedPreconditionError("this controller has no worker for " + arch +
                                         ": put musterd and muster-shim built for it into " +
                                         folder + " and restart it (muster serve --stop)");
  }
  std::shared_ptr<const std::string>& content = contents_[path + (gzip ? ".gz" : "")];
  if (content == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(std::string bytes, ReadProgram(path));
    if (Sha256(bytes) != sum->second) {
      return absl::FailedPreconditionError(
          path + " has changed since this controller started: restart it (muster serve --stop)");
    }
    if (gzip) {
      MUSTER_ASSIGN_OR_RETURN(bytes, Gzip(bytes));
    }
    content = std::make_shared<const std::string>(std::move(bytes));
  }
  return content;
}

}  // namespace muster::nodes
