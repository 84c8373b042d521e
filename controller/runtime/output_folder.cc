#include "controller/runtime/output_folder.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "common/status.h"
#include "common/unique_fd.h"
#include "controller/logs/fs_user.h"

namespace muster::runtime {
namespace {

constexpr int kMaxTries = 1000;
constexpr size_t kMaxName = 100;

std::string FileName(std::string_view name) {
  std::string out;
  for (const char c : name.substr(0, kMaxName)) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '_' || c == '-';
    out += good ? c : '_';
  }
  return out.empty() ? "job" : out;
}

std::string Stamp(int64_t realtime_ns) {
  const time_t seconds = realtime_ns / 1'000'000'000;
  struct tm local {};
  ::localtime_r(&seconds, &local);
  std::array<char, 32> text;
  const size_t length = ::strftime(text.data(), text.size(), "%Y-%m-%d_%H-%M-%S", &local);
  return std::string(text.data(), length);
}

// mkdir -p.
absl::Status MakeParents(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (::mkdir(part.c_str(), 0777) != 0 && errno != EEXIST && errno != EROFS && errno != EACCES) {
      return PosixError("mkdir " + part);
    }
    if (slash == std::string::npos) break;
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return PosixError("mkdir " + path);
  return S_ISDIR(status.st_mode) ? absl::OkStatus() : PosixError("mkdir " + path, ENOTDIR);
}

absl::Status WriteAll(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return PosixError("write " + path);
    text.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> MakeOutputFolder(const std::string& root, std::string_view name,
                                             int64_t realtime_ns, const Owner& owner) {
  const logs::ScopedFsUser user(owner.uid, owner.gid);
  MUSTER_RETURN_IF_ERROR(Annotate(MakeParents(root), "output folder"));
  const std::string base = absl::StrCat(root, "/", Stamp(realtime_ns), "_", FileName(name));
  for (int i = 1; i <= kMaxTries; ++i) {
    const std::string path = i == 1 ? base : absl::StrCat(base, "_", i);
    if (::mkdir(path.c_str(), 0777) == 0) return path;
    if (errno != EEXIST) return Annotate(PosixError("mkdir " + path), "output folder");
  }
  return absl::AlreadyExistsError(
      absl::StrCat("output folder: ", base, " and ", kMaxTries, " more exist"));
}

absl::Status WriteOutput(const std::string& path, std::string_view text, const Owner& owner) {
  const logs::ScopedFsUser user(owner.uid, owner.gid);
  const std::string fresh = path + ".new";
  UniqueFd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!fd) return PosixError("open " + fresh);
  absl::Status status = WriteAll(fd.get(), text, fresh);
  if (status.ok() && ::rename(fresh.c_str(), path.c_str()) != 0)
    status = PosixError("rename " + fresh);
  if (!status.ok()) (void)::unlink(fresh.c_str());
  return status;
}

absl::Status AppendOutput(const std::string& path, std::string_view text, const Owner& owner) {
  const logs::ScopedFsUser user(owner.uid, owner.gid);
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!fd) return PosixError("open " + path);
  const off_t before = ::lseek(fd.get(), 0, SEEK_END);
  absl::Status status = WriteAll(fd.get(), text, path);
  if (!status.ok() && before >= 0) (void)::ftruncate(fd.get(), before);
  return status;
}

void RemoveOutputFolder(const std::string& path, const Owner& owner) {
  const logs::ScopedFsUser user(owner.uid, owner.gid);
  for (const char* const file : {"/job.toml", "/plan.txt"}) (void)::unlink((path + file).c_str());
  (void)::rmdir(path.c_str());
}

}  // namespace muster::runtime
