#include "worker/shim/stream_pump.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/loss_marker.h"

namespace muster::shim {
namespace {

constexpr size_t kReadSize = 64 << 10;  // a pipe's usual capacity
constexpr int kReadsPerTurn = 16;

}  // namespace

StreamPump::StreamPump(Files files, const Clock& clock)
    : files_(std::move(files)),
      log_(files_.log, files_.quota, files_.floor, files_.stream),
      times_(files_.times, clock) {
  if (!log_.ok()) Fail("create");
  if (error_.empty()) error_ = times_.error();
}

bool StreamPump::Pump(bool last) {
  static char buffer[kReadSize];
  const auto most = static_cast<size_t>(std::min<uint64_t>(sizeof buffer, log_.largest_write()));
  bool any = false;
  for (int i = 0; pipe_ && i < kReadsPerTurn; ++i) {
    const uint64_t floor = log_.floor();
    waits_ = !log_.MakeRoom(most) && !last;
    if (log_.floor() > floor) times_.FreeBelow(log_.floor());
    if (waits_) break;
    const ssize_t n = read(pipe_.get(), buffer, most);
    if (n > 0) {
      any = true;
      Write(buffer, static_cast<uint64_t>(n));
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    Close();  // end of file; a read error on a pipe means the same
  }
  return any;
}

void StreamPump::Close() {
  if (pipe_ && unmarked_ > 0 && !WriteMarker() && FreedSome()) WriteMarker();
  pipe_.reset();
  waits_ = false;
}

void StreamPump::Acknowledge(uint64_t offset) {
  log_.Acknowledge(offset);
}

void StreamPump::Write(const char* data, uint64_t count) {
  times_.Note(log_.size());
  if (error_.empty()) error_ = times_.error();
  uint64_t done = 0;
  if (unmarked_ == 0 || WriteMarker() || (FreedSome() && WriteMarker())) {
    done = log_.Append(data, count);
    if (done < count && FreedSome()) {
      done += log_.Append(data + done, count - done);
    }
    if (done > 0) line_begins_ = data[done - 1] == '\n';
  }
  if (done == count) return;
  Fail("write");
  lost_ += count - done;
  unmarked_ += count - done;
}

// After a write that failed, with its errno: whether the disk was full and has got room.
bool StreamPump::FreedSome() {
  return (errno == ENOSPC || errno == EDQUOT) && log_.FreeAcknowledged();
}

// In the place of bytes that were lost; false: that does not fit either.
bool StreamPump::WriteMarker() {
  const uint64_t before = log_.size();
  const std::string marker =
      LossMarker(unmarked_, error_, line_begins_, /*json=*/files_.times.empty());
  if (log_.Append(marker.data(), marker.size()) < marker.size()) {
    const int why = errno;
    log_.CutTo(before);
    errno = why;
    return false;
  }
  unmarked_ = 0;
  line_begins_ = true;
  return true;
}

void StreamPump::Fail(const char* what) {
  if (error_.empty()) error_ = std::string(what) + " " + files_.log + ": " + std::strerror(errno);
}

}  // namespace muster::shim
