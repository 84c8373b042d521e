#include "trainer/data/file_ops.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>

#include "common/unique_fd.h"
#include "trainer/data/data_error.h"

namespace muster::data {

void WriteAll(int fd, const void* data, size_t size, const std::string& path) {
  const auto* at = static_cast<const uint8_t*>(data);
  while (size > 0) {
    const ssize_t n = ::write(fd, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw DataError("write " + path + ": " + std::strerror(errno));
    at += n;
    size -= static_cast<size_t>(n);
  }
}

bool IsStill(int fd, const std::string& path) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

void SyncFolderOf(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? std::string(".") : parent.string();
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) {
    if (errno == EACCES) return;  // a folder that may be written but not listed
    throw DataError("open " + folder + ": " + std::strerror(errno));
  }
  // Some network file systems do not sync folders: they have no more to give.
  if (::fsync(fd.get()) != 0 && errno != EINVAL && errno != ENOTSUP) {
    throw DataError("sync " + folder + ": " + std::strerror(errno));
  }
}

}  // namespace muster::data
