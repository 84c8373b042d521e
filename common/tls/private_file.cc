#include "common/tls/private_file.h"

#include <fcntl.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "common/status.h"
#include "common/unique_fd.h"

namespace muster::tls {
namespace {

constexpr off_t kLargest = 1 << 20;

absl::Status Unsafe(const std::string& path, const std::string& why, const std::string& fix) {
  return absl::FailedPreconditionError(path + ": " + why + "; " + fix);
}

absl::Status WriteAll(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return PosixError("write");
    content.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

// For a name that is not taken.
std::string RandomLetters() {
  std::array<unsigned char, 12> bytes{};
  RAND_bytes(bytes.data(), bytes.size());  // of use even if it fails: O_EXCL
  std::string letters;
  for (const unsigned char byte : bytes) letters += static_cast<char>('a' + byte % 26);
  return letters;
}

// Content and owner reach the disk before the name does.
absl::Status Fill(int fd, std::string_view content, const struct stat& folder) {
  if (geteuid() == 0 && folder.st_uid != 0 && fchown(fd, folder.st_uid, folder.st_gid) != 0) {
    return PosixError("chown");
  }
  MUSTER_RETURN_IF_ERROR(WriteAll(fd, content));
  return fsync(fd) == 0 ? absl::OkStatus() : PosixError("fsync");
}

}  // namespace

absl::StatusOr<std::string> ReadOwnFile(const std::string& path, bool secret, uid_t also) {
  // Non-blocking: what waits there may be a FIFO.
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd && errno == ELOOP) {
    return Unsafe(path, "a symbolic link", "put the file itself there");
  }
  if (!fd) return PosixError("open " + path);
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return PosixError("stat " + path);
  if (!S_ISREG(info.st_mode)) return Unsafe(path, "not a plain file", "remove it");
  if (info.st_uid != geteuid() && info.st_uid != 0 && info.st_uid != also) {
    return Unsafe(path,
                  "belongs to uid " + std::to_string(info.st_uid) + ", not to you (uid " +
                      std::to_string(geteuid()) + ")",
                  "chown it, or use another folder");
  }
  if ((info.st_mode & 022) != 0 || (secret && (info.st_mode & 077) != 0)) {
    return Unsafe(path, std::string("others can ") + (secret ? "read or write it" : "write it"),
                  "chmod 600 " + path);
  }
  if (info.st_size > kLargest) return Unsafe(path, "larger than 1 MiB", "this is no such file");
  std::string content(static_cast<size_t>(info.st_size), '\0');
  size_t have = 0;
  while (have < content.size()) {
    const ssize_t n = read(fd.get(), content.data() + have, content.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return PosixError("read " + path);
    if (n == 0) break;
    have += static_cast<size_t>(n);
  }
  content.resize(have);
  return content;
}

absl::Status WriteOwnFile(const std::string& path, std::string_view content) {
  const std::filesystem::path full(path);
  const std::string folder = full.parent_path().string();
  const std::string name = full.filename().string();
  // All by this descriptor: another user's folder may become a link to anywhere in between.
  const UniqueFd dir(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  struct stat info {};
  if (!dir || fstat(dir.get(), &info) != 0) return PosixError("open " + folder);
  const std::string temporary = name + "." + RandomLetters();
  const UniqueFd fd(openat(dir.get(), temporary.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return PosixError("create " + folder + "/" + temporary);
  absl::Status done = Fill(fd.get(), content, info);
  if (done.ok() && renameat(dir.get(), temporary.c_str(), dir.get(), name.c_str()) != 0) {
    done = PosixError("rename");
  }
  if (!done.ok()) {
    unlinkat(dir.get(), temporary.c_str(), 0);
    return Annotate(done, path);
  }
  return fsync(dir.get()) == 0 ? absl::OkStatus() : PosixError("fsync " + folder);
}

absl::StatusOr<uid_t> MakeOwnFolder(const std::string& given) {
  std::string path = given;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  std::string parent = std::filesystem::path(path).parent_path().string();
  if (parent.empty()) parent = ".";
  std::error_code error;
  std::filesystem::create_directories(parent, error);
  const UniqueFd above(open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat theirs {};
  if (!above || fstat(above.get(), &theirs) != 0) return PosixError("open " + parent);
  const std::string name = std::filesystem::path(path).filename().string();
  const bool made = mkdirat(above.get(), name.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) return PosixError("make folder " + path);
  const UniqueFd fd(
      openat(above.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd && (errno == ENOTDIR || errno == ELOOP)) {
    return Unsafe(path, "not a folder", "remove it, or name another");
  }
  struct stat info {};
  if (!fd || fstat(fd.get(), &info) != 0) return PosixError("open " + path);
  if (made && geteuid() == 0 && theirs.st_uid != 0) {
    if (fchown(fd.get(), theirs.st_uid, theirs.st_gid) != 0) return PosixError("chown " + path);
    return theirs.st_uid;
  }
  if (info.st_uid != geteuid() && geteuid() != 0) {
    return Unsafe(path, "belongs to uid " + std::to_string(info.st_uid) + ", not to you",
                  "name another folder");
  }
  if ((info.st_mode & 022) != 0) {
    return Unsafe(path, "others can write to it", "chmod 700 " + path);
  }
  return info.st_uid;
}

}  // namespace muster::tls
