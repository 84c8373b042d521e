#include "worker/shim/log_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace muster::shim {
namespace {

// A hole begins at a multiple, below what is asked for (that is gone already): a block that two
// holes share would never be given back.
constexpr uint64_t kHoleAlign = 64 << 10;

}  // namespace

LogFile::LogFile(const std::string& path, const LogQuota& quota, LogFloor* floor, size_t stream)
    : quota_(quota),
      floors_(floor),
      stream_(stream),
      fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {}

uint64_t LogFile::largest_write() const {
  return quota_.bytes == 0 ? UINT64_MAX : std::max<uint64_t>(1, quota_.bytes / 2);
}

bool LogFile::MakeRoom(uint64_t count) {
  if (quota_.bytes == 0 || floors_ == nullptr) return true;
  const uint64_t held = size_ - floor_;
  if (held + count <= quota_.bytes) return true;
  // Some more than is needed now, so that this is rare.
  const uint64_t wanted = floor_ + (held + count - quota_.bytes) + quota_.bytes / 4;
  FreeBelow(std::min({acked_, wanted, size_}));
  if (size_ - floor_ + count <= quota_.bytes) return true;
  if (!quota_.drop_oldest) return false;
  FreeBelow(std::min(wanted, size_));
  return true;
}

bool LogFile::FreeAcknowledged() {
  const uint64_t before = floor_;
  if (floors_ != nullptr) FreeBelow(std::min(acked_, size_));
  return floor_ > before;
}

void LogFile::FreeBelow(uint64_t offset) {
  // Who reads looks at the floor after each read: it must rise first.
  if (offset <= floor_ || !floors_->Raise(stream_, offset)) return;
  const uint64_t from = floor_ / kHoleAlign * kHoleAlign;
  (void)fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from),
                  static_cast<off_t>(offset - from));
  floor_ = offset;
}

uint64_t LogFile::Append(const char* data, uint64_t count) {
  uint64_t done = 0;
  while (done < count) {
    const ssize_t n = fd_ ? write(fd_.get(), data + done, count - done) : -1;
    if (n < 0 && fd_ && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<uint64_t>(n);
  }
  size_ += done;
  return done;
}

void LogFile::CutTo(uint64_t size) {
  if (ftruncate(fd_.get(), static_cast<off_t>(size)) == 0) size_ = size;
}

void LogFile::Acknowledge(uint64_t offset) {
  acked_ = std::max(acked_, std::min(offset, size_));
}

}  // namespace muster::shim
