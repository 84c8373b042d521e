#include "controller/nodes/worker_programs.h"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include "common/for_each_item.h"
#include "common/sha256.h"
#include "common/status.h"

namespace muster::nodes {
namespace {

// In the order of the checksum.
constexpr std::array<const char*, 2> kFiles = {"muster-shim", "musterd"};

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

template <typename Map>
auto* Find(Map& map, const std::string& key) {
  const auto it = map.find(key);
  return it == map.end() ? nullptr : &it->second;
}

}  // namespace

WorkerPrograms::WorkerPrograms(std::string musterd) : musterd_(std::move(musterd)) {}

std::string WorkerPrograms::Folder(const std::string& arch) const {
  const std::filesystem::path own = std::filesystem::path(musterd_).parent_path();
  if (arch == OwnArch()) return own.string();
  return (own.parent_path() / "libexec" / "muster" / arch).string();
}

std::vector<WorkerPrograms::Stamp> WorkerPrograms::StampsIn(const std::string& folder) {
  std::vector<Stamp> stamps;
  for (const char* file : kFiles) {
    struct stat info {};
    if (stat((folder + "/" + file).c_str(), &info) != 0) return {};
    stamps.push_back({.device = info.st_dev,
                      .inode = info.st_ino,
                      .size = info.st_size,
                      .changed_ns = info.st_ctim.tv_sec * 1'000'000'000LL + info.st_ctim.tv_nsec});
  }
  return stamps;
}

absl::StatusOr<WorkerPrograms::Known> WorkerPrograms::Load(const std::string& arch,
                                                           const std::string& folder) {
  // Before the files are read: a change in between is seen the next time.
  Known known;
  known.build.arch = arch;
  known.stamps = StampsIn(folder);
  Sha256Stream sum;
  for (const char* file : kFiles) {
    MUSTER_ASSIGN_OR_RETURN(const std::string bytes, ReadProgram(folder + "/" + file));
    known.programs[file].sum = Sha256(bytes);
    known.build.bytes += bytes.size();
    sum.Add(bytes);
  }
  known.build.checksum = ToHex(sum.Finish());
  return known;
}

void WorkerPrograms::Look(const std::string& arch) {
  const auto it = known_.find(arch);
  if (it != known_.end()) {
    if (arch == OwnArch() || it->second.stamps == StampsIn(Folder(arch))) return;
    known_.erase(it);
  }
  auto loaded = Load(arch, Folder(arch));
  if (loaded.ok()) known_.emplace(arch, *std::move(loaded));
}

std::vector<WorkerBuild> WorkerPrograms::Builds() {
  std::set<std::string> archs = {OwnArch()};
  const std::string others = std::filesystem::path(Folder("other")).parent_path();
  ForEachItem(others, [&](const std::filesystem::path& path) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) archs.insert(path.filename());
  });
  absl::MutexLock lock(&mutex_);
  for (const auto& [arch, known] : known_) archs.insert(arch);
  for (const std::string& arch : archs) Look(arch);
  std::vector<WorkerBuild> builds;
  for (const auto& [arch, known] : known_) builds.push_back(known.build);
  return builds;
}

absl::StatusOr<std::shared_ptr<const std::string>> WorkerPrograms::Content(const std::string& arch,
                                                                           const std::string& file,
                                                                           bool gzip) {
  const std::string folder = Folder(arch);
  absl::MutexLock lock(&mutex_);
  Known* const known = Find(known_, arch);
  Program* const program = known == nullptr ? nullptr : Find(known->programs, file);
  if (program == nullptr) {
    return absl::FailedPreconditionError("this controller has no worker for " + arch +
                                         ": put musterd and muster-shim built for it into " +
                                         folder);
  }
  std::shared_ptr<const std::string>& content = gzip ? program->packed : program->plain;
  if (content == nullptr) {
    const std::string path = folder + "/" + file;
    MUSTER_ASSIGN_OR_RETURN(std::string bytes, ReadProgram(path));
    if (Sha256(bytes) != program->sum) {
      // Another build's next try finds what is there then.
      if (arch != OwnArch()) return absl::UnavailableError(path + " has just changed");
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
