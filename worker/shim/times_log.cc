#include "worker/shim/times_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "common/times_format.h"

namespace muster::shim {
namespace {

constexpr int64_t kResolutionNs = 1'000'000;
// The file is freed in pieces of this many records, so that it is rarely done.
constexpr uint64_t kFreeAtLeast = 4096;

off_t Position(uint64_t record) {
  return static_cast<off_t>(kTimesHeaderSize + record * kTimesRecordSize);
}

}  // namespace

TimesLog::TimesLog(const std::string& path, const Clock& clock) : clock_(clock), path_(path) {
  if (path_.empty()) return;
  fd_.reset(open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const auto header = EncodeTimesHeader();
  struct stat info {};
  if (!fd_ || fstat(fd_.get(), &info) != 0) {
    Fail("create");
  } else if (info.st_size >= static_cast<off_t>(kTimesHeaderSize)) {
    records_ = (static_cast<uint64_t>(info.st_size) - kTimesHeaderSize) / kTimesRecordSize;
  } else if (write(fd_.get(), header.data(), header.size()) !=
             static_cast<ssize_t>(header.size())) {
    Fail("write");
  }
}

void TimesLog::Note(uint64_t offset) {
  if (!fd_) return;
  const int64_t now = clock_.RealtimeNs();
  if (last_ns_ != INT64_MIN && std::llabs(now - last_ns_) < kResolutionNs) return;
  const auto record = EncodeTimesRecord({offset, now});
  // A record cut in the middle would shift all later ones: no more times for this stream.
  if (write(fd_.get(), record.data(), record.size()) != static_cast<ssize_t>(record.size())) {
    return Fail("write");
  }
  ++records_;
  last_ns_ = now;
}

void TimesLog::FreeBelow(uint64_t offset) {
  if (!fd_) return;
  // The last record at or below `offset` stays: it tells the time of the byte there.
  uint64_t low = freed_;
  uint64_t high = records_;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    char bytes[kTimesRecordSize];
    if (pread(fd_.get(), bytes, sizeof bytes, Position(middle)) != sizeof bytes) return;
    if (DecodeTimesRecord(bytes).offset <= offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0 || low - 1 < freed_ + kFreeAtLeast) return;
  // What is freed reads as zeros: records of offset 0, so that looking up still finds its way.
  (void)fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, Position(freed_),
                  Position(low - 1) - Position(freed_));
  freed_ = low - 1;
}

void TimesLog::Fail(const char* what) {
  error_ = std::string(what) + " " + path_ + ": " + std::strerror(errno);
  fd_.reset();
}

}  // namespace muster::shim
