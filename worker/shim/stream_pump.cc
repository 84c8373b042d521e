#include "worker/shim/stream_pump.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "common/times_format.h"

namespace muster::shim {
namespace {

constexpr size_t kReadSize = 64 << 10;  // a pipe's whole capacity
constexpr int kReadsPerTurn = 16;
// Finer times would cost more than they tell: a flood of short lines stays below 2 % of extra
// bytes.
constexpr int64_t kTimesResolutionNs = 1'000'000;

UniqueFd Create(const std::string& path) {
  return UniqueFd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
}

}  // namespace

StreamPump::StreamPump(const char* log_path, const char* times_path, const Clock& clock)
    : clock_(clock), log_path_(log_path), times_path_(times_path == nullptr ? "" : times_path) {
  log_ = Create(log_path_);
  if (!log_) Fail("create", log_path_.c_str());
  if (times_path_.empty()) return;
  times_ = Create(times_path_);
  const auto header = EncodeTimesHeader();
  struct stat info {};
  if (!times_ || fstat(times_.get(), &info) != 0) {
    Fail("create", times_path_.c_str());
    times_.reset();
  } else if (info.st_size > 0) {
    // An earlier shim of this rank, which ended before it started anything, has written it.
  } else if (write(times_.get(), header.data(), header.size()) !=
             static_cast<ssize_t>(header.size())) {
    Fail("write", times_path_.c_str());
    times_.reset();
  }
}

bool StreamPump::Pump() {
  static char buffer[kReadSize];
  bool any = false;
  for (int i = 0; pipe_ && i < kReadsPerTurn; ++i) {
    const ssize_t n = read(pipe_.get(), buffer, sizeof buffer);
    if (n > 0) {
      any = true;
      Write(buffer, static_cast<size_t>(n));
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    pipe_.reset();  // end of file; a read error on a pipe means the same
  }
  return any;
}

void StreamPump::Write(const char* data, size_t count) {
  NoteTime();
  while (count > 0) {
    const ssize_t n = log_ ? write(log_.get(), data, count) : -1;
    if (n < 0 && log_ && errno == EINTR) continue;
    if (n <= 0) {
      Fail("write", log_path_.c_str());
      lost_ += count;
      return;
    }
    size_ += static_cast<uint64_t>(n);
    data += n;
    count -= static_cast<size_t>(n);
  }
}

void StreamPump::NoteTime() {
  if (!times_) return;
  const int64_t now = clock_.RealtimeNs();
  if (last_time_ns_ != INT64_MIN && std::llabs(now - last_time_ns_) < kTimesResolutionNs) return;
  const auto record = EncodeTimesRecord({size_, now});
  if (write(times_.get(), record.data(), record.size()) == static_cast<ssize_t>(record.size())) {
    last_time_ns_ = now;
    return;
  }
  // A record cut in the middle would shift all later ones: no more times for this stream.
  Fail("write", times_path_.c_str());
  times_.reset();
}

void StreamPump::Fail(const char* what, const char* path) {
  if (error_.empty()) error_ = std::string(what) + " " + path + ": " + std::strerror(errno);
}

}  // namespace muster::shim
