#include "trainer/data/cache_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "trainer/data/data_error.h"
#include "trainer/data/file_ops.h"

namespace muster::data {
namespace {

void Lock(int fd, const std::string& path, const DataReport& report) {
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  report.note("waiting for another process that builds the same index (" + path + ")");
  while (::flock(fd, LOCK_EX) != 0 && errno == EINTR) {
  }
}

}  // namespace

CacheLock::CacheLock(std::string path, const DataReport& report) : path_(std::move(path)) {
  do {
    fd_.reset(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!fd_) throw DataError("create " + path_ + ": " + std::strerror(errno));
    Lock(fd_.get(), path_, report);
  } while (!IsStill(fd_.get(), path_));
}

CacheLock::~CacheLock() {
  ::unlink(path_.c_str());
}

}  // namespace muster::data
