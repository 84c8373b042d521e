#include "controller/logs/stream_cursor.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/status.h"
#include "controller/logs/layout.h"

namespace muster::logs {
namespace {

constexpr size_t kTailBlock = 64 << 10;

}  // namespace

StreamCursor::StreamCursor(const std::string& folder, uint32_t rank, std::string host,
                           v1::Stream stream, size_t buffer_size)
    : log_(folder + "/" + LogName(stream)),
      rank_(rank),
      host_(std::move(host)),
      stream_(stream),
      buffer_size_(std::min(buffer_size, kMaxRun)),
      times_(folder + "/" + TimesName(stream)) {}

void StreamCursor::Extend(uint64_t size, bool ended) {
  if (size > size_) {
    size_ = size;
    partial_since_.reset();
    times_.Refresh();
  }
  ended_ = ended_ || ended;
}

absl::Status StreamCursor::SeekTail(uint64_t lines) {
  if (lines == 0) position_ = size_;
  if (position_ >= size_) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const uint64_t first, log_.First());
  position_ = std::max(position_, std::min(first, size_));
  // The newline of the last line is no separator: look in front of it.
  uint64_t end = size_ - 1;
  while (end > position_) {
    const auto want = static_cast<size_t>(std::min<uint64_t>(end - position_, kTailBlock));
    MUSTER_ASSIGN_OR_RETURN(const std::string block, log_.ReadAt(end - want, want));
    for (size_t at = block.size(); at > 0; --at) {
      if (block[at - 1] != '\n' || --lines > 0) continue;
      position_ = std::max(position_, end - want + at);
      return absl::OkStatus();
    }
    end -= want;
  }
  return absl::OkStatus();
}

absl::Status StreamCursor::SeekTime(int64_t since_ns) {
  const std::optional<uint64_t> from = times_.FirstSince(since_ns);
  if (!from) return absl::OkStatus();  // no times: all may be new
  MUSTER_ASSIGN_OR_RETURN(const uint64_t first, log_.First());
  position_ = std::min(std::max(*from, first), size_);
  if (position_ == first || position_ == size_) return absl::OkStatus();
  // The line that goes on here began before.
  for (uint64_t at = position_ - 1; at < size_;) {
    const auto want = static_cast<size_t>(std::min<uint64_t>(size_ - at, kTailBlock));
    MUSTER_ASSIGN_OR_RETURN(const std::string block, log_.ReadAt(at, want));
    const size_t newline = block.find('\n');
    if (newline != std::string::npos) {
      position_ = at + newline + 1;
      return absl::OkStatus();
    }
    if (block.empty()) break;
    at += block.size();
  }
  position_ = size_;
  return absl::OkStatus();
}

// What retention has removed is passed over.
absl::StatusOr<std::string> StreamCursor::ReadOn(uint64_t from, size_t want) {
  auto data = log_.ReadAt(from, want);
  if (!absl::IsOutOfRange(data.status()) || !buffer_.empty()) return data;
  MUSTER_ASSIGN_OR_RETURN(position_, log_.First());
  return log_.ReadAt(position_, want);
}

absl::Status StreamCursor::Fill() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  const uint64_t from = position_ + buffer_.size();
  if (from >= size_ || buffer_.size() >= buffer_size_) return absl::OkStatus();
  const auto want =
      static_cast<size_t>(std::min<uint64_t>(size_ - from, buffer_size_ - buffer_.size()));
  MUSTER_ASSIGN_OR_RETURN(const std::string more, ReadOn(from, want));
  const uint64_t begin = position_ + buffer_.size();    // `from`, or behind what was removed
  if (more.size() < want) size_ = begin + more.size();  // cut back after a failed sync
  buffer_ += more;
  return absl::OkStatus();
}

// Sets head_ to the next line or full buffer; false if the buffer holds neither.
bool StreamCursor::FindHead() {
  const std::string_view data = Buffered();
  const size_t newline = data.find('\n');
  if (newline != std::string_view::npos) {
    head_ = newline + 1;
  } else if (data.size() >= buffer_size_) {
    head_ = data.size();
  } else {
    return false;
  }
  head_time_ = times_.TimeAt(position_);
  return true;
}

absl::StatusOr<bool> StreamCursor::Ready(TimePoint now) {
  if (!has_unread()) return false;
  if (FindHead()) return true;
  MUSTER_RETURN_IF_ERROR(Fill());
  if (FindHead()) return true;
  if (Buffered().empty()) return false;
  if (!ended_) {
    if (whole_lines_) return false;
    if (!partial_since_) partial_since_ = now;
    if (now - *partial_since_ < kPartialDelay) return false;
  }
  head_ = Buffered().size();
  head_time_ = times_.TimeAt(position_);
  return true;
}

v1::LogsResponse StreamCursor::Take(int64_t until) {
  v1::LogsResponse run;
  run.set_rank(rank_);
  run.set_host(host_);
  run.set_stream(stream_);
  run.set_offset(position_);
  run.set_realtime_ns(head_time_);
  size_t taken = 0;
  int64_t told = head_time_;
  do {
    key_ = std::max(key_, head_time_);
    if (with_times_ && head_time_ != told) {
      v1::WriteTime& time = *run.add_times();
      time.set_offset(position_);
      time.set_realtime_ns(head_time_);
      told = head_time_;
    }
    taken += head_;
    begin_ += head_;
    position_ += head_;
    mid_line_ = buffer_[begin_ - 1] != '\n';
  } while (!mid_line_ && taken < kMaxRun && FindHead() && key() <= until &&
           taken + head_ <= kMaxRun);
  run.set_data(buffer_.substr(begin_ - taken, taken));
  partial_since_.reset();
  if (Buffered().empty()) {
    buffer_ = std::string();  // idle streams hold no memory
    begin_ = 0;
  }
  return run;
}

}  // namespace muster::logs
