#include "trainer/data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/unique_fd.h"
#include "trainer/data/data_error.h"

namespace muster::data {

MappedFile::MappedFile(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) throw DataError("open " + path + ": " + std::strerror(errno));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) throw DataError("stat " + path + ": " + std::strerror(errno));
  if (!S_ISREG(info.st_mode)) throw DataError(path + " is not a regular file");
  size_ = info.st_size;
  if (size_ == 0) return;
  void* mapped = ::mmap(nullptr, static_cast<size_t>(size_), PROT_READ, MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED) throw DataError("map " + path + ": " + std::strerror(errno));
  data_ = static_cast<uint8_t*>(mapped);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void MappedFile::Prefetch(int64_t offset, int64_t count) const {
  static const int64_t page = ::sysconf(_SC_PAGESIZE);
  const int64_t begin = offset / page * page;
  ::madvise(data_ + begin, static_cast<size_t>(offset + count - begin), MADV_WILLNEED);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, static_cast<size_t>(size_));
}

}  // namespace muster::data
