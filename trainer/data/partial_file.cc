#include "trainer/data/partial_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "trainer/data/data_error.h"
#include "trainer/data/file_ops.h"

namespace muster::data {
namespace {

constexpr int64_t kCopyBytes = 1 << 20;
// Written bytes that the disk is told to begin with.
constexpr int64_t kWriteback = 8 << 20;

[[noreturn]] void Fail(const std::string& what, const std::string& path) {
  throw DataError(what + " " + path + ": " + std::strerror(errno));
}

// More files than a process may have open.
[[noreturn]] void FailToCreate(const std::string& path) {
  const bool too_many = errno == EMFILE;
  throw DataError("create " + path + ": " + std::strerror(errno) +
                  (too_many ? "; raise the limit (ulimit -n)" : ""));
}

}  // namespace

PartialFile::PartialFile(std::string final_path, int64_t resume_at)
    : final_path_(std::move(final_path)),
      path_(TemporaryPath(final_path_)),
      size_(std::max<int64_t>(resume_at, 0)),
      keep_(resume_at >= 0) {
  OpenLocked();
  struct stat info {};
  if (::fstat(fd_.get(), &info) != 0) Fail("stat", path_);
  if (info.st_size < size_) {
    throw DataError(fmt::format(
        "{} has {} bytes, but the interrupted run wrote {}: it was changed; start again without "
        "--resume",
        path_, info.st_size, size_));
  }
  if (::ftruncate(fd_.get(), size_) != 0) Fail("truncate", path_);
  if (::lseek(fd_.get(), size_, SEEK_SET) < 0) Fail("seek in", path_);
}

void PartialFile::OpenLocked() {
  do {
    fd_.reset(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!fd_) FailToCreate(path_);
    if (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      fd_.reset();
      throw DataError(path_ + " is being written by another process");
    }  // a file system without locks is used without
  } while (!IsStill(fd_.get(), path_));
}

PartialFile::~PartialFile() {
  if (fd_ && !keep_) ::unlink(path_.c_str());
}

void PartialFile::Write(const void* data, size_t size) {
  WriteAll(fd_.get(), data, size, path_);
  size_ += static_cast<int64_t>(size);
  if (size_ - given_to_disk_ < kWriteback) return;
  // Only begins: Sync waits for little then, and reports errors.
  ::sync_file_range(fd_.get(), given_to_disk_, size_ - given_to_disk_, SYNC_FILE_RANGE_WRITE);
  given_to_disk_ = size_;
}

void PartialFile::AppendFile(int fd, int64_t size, const std::string& name) {
  std::vector<char> block;
  for (off_t offset = 0; offset < size;) {
    // The kernel copies, or shares the blocks, where the file system can.
    if (block.empty()) {
      const ssize_t n =
          ::copy_file_range(fd, &offset, fd_.get(), nullptr, static_cast<size_t>(size - offset), 0);
      if (n > 0) {
        size_ += n;
        continue;
      }
      block.resize(kCopyBytes);
    }
    const auto wanted = static_cast<size_t>(std::min(kCopyBytes, size - offset));
    const ssize_t n = ::pread(fd, block.data(), wanted, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) Fail("read", name);
    if (n == 0) {
      throw DataError(fmt::format("read {}, offset {}: the file became shorter", name, offset));
    }
    Write(block.data(), static_cast<size_t>(n));
    offset += n;
  }
}

size_t PartialFile::ReadAt(int64_t offset, void* data, size_t size) const {
  auto* at = static_cast<uint8_t*>(data);
  size_t done = 0;
  while (done < size) {
    const ssize_t n =
        ::pread(fd_.get(), at + done, size - done, offset + static_cast<int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) Fail("read", path_);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

void PartialFile::Sync() {
  if (::fdatasync(fd_.get()) != 0) Fail("sync", path_);
  if (name_synced_) return;
  SyncFolderOf(path_);
  name_synced_ = true;
}

void PartialFile::Publish() {
  if (::fsync(fd_.get()) != 0) Fail("sync", path_);
  if (::rename(path_.c_str(), final_path_.c_str()) != 0) Fail("rename to " + final_path_, path_);
  fd_.reset();
  SyncFolderOf(final_path_);
}

void PartialFile::CheckLeftover(const std::string& final_path, int64_t size) {
  const std::string path = HasLeftover(final_path) ? TemporaryPath(final_path) : final_path;
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) Fail("stat", path);
    throw DataError(path +
                    ", which the interrupted run wrote, is gone; start again without "
                    "--resume");
  }
  if (info.st_size != size) {
    throw DataError(fmt::format(
        "{} has {} bytes, but the interrupted run wrote {}: it was changed; start again without "
        "--resume",
        path, info.st_size, size));
  }
}

bool PartialFile::HasLeftover(const std::string& final_path) {
  return ::access(TemporaryPath(final_path).c_str(), F_OK) == 0;
}

void PartialFile::PublishLeftover(const std::string& final_path, int64_t size) {
  CheckLeftover(final_path, size);
  if (HasLeftover(final_path)) PartialFile(final_path, size).Publish();
}

}  // namespace muster::data
