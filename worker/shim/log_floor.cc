#include "worker/shim/log_floor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::shim {
namespace {

constexpr size_t kStreams = 3;
constexpr size_t kSize = kStreams * sizeof(uint64_t);

off_t Position(size_t stream) {
  return static_cast<off_t>(stream * sizeof(uint64_t));
}

}  // namespace

bool LogFloor::Create(const std::string& path) {
  fd_.reset(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  struct stat info {};
  if (!fd_ || fstat(fd_.get(), &info) != 0) return false;
  if (info.st_size >= static_cast<off_t>(kSize)) return true;
  // Its block is taken now: on a full disk it can still be written over.
  const char zeros[kSize] = {};
  return pwrite(fd_.get(), zeros, kSize, 0) == static_cast<ssize_t>(kSize);
}

bool LogFloor::Open(const std::string& path) {
  fd_.reset(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return opened();
}

bool LogFloor::Raise(size_t stream, uint64_t floor) {
  return pwrite(fd_.get(), &floor, sizeof floor, Position(stream)) ==
         static_cast<ssize_t>(sizeof floor);
}

uint64_t LogFloor::Read(size_t stream) const {
  uint64_t floor = 0;
  if (!fd_ || pread(fd_.get(), &floor, sizeof floor, Position(stream)) !=
                  static_cast<ssize_t>(sizeof floor)) {
    return 0;
  }
  return floor;
}

}  // namespace muster::shim
