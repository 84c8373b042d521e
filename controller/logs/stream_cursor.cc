#include "controller/logs/stream_cursor.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "controller/logs/file_io.h"
#include "controller/logs/layout.h"

namespace muster::logs {
namespace {

constexpr size_t kTailBlock = 64 << 10;

}  // namespace

StreamCursor::StreamCursor(const std::string& folder, uint32_t rank, std::string host,
                           v1::Stream stream, size_t buffer_size)
    : log_path_(folder + "/" + LogName(stream)),
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
  if (lines == 0) {
    position_ = size_;
    return absl::OkStatus();
  }
  if (size_ == 0) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(log_path_, O_RDONLY));
  // The newline of the last line is no separator: look in front of it.
  uint64_t end = size_ - 1;
  while (end > 0) {
    const auto want = static_cast<size_t>(std::min<uint64_t>(end, kTailBlock));
    MUSTER_ASSIGN_OR_RETURN(const std::string block, ReadAt(fd.get(), end - want, want, log_path_));
    for (size_t at = block.size(); at > 0; --at) {
      if (block[at - 1] != '\n' || --lines > 0) continue;
      position_ = end - want + at;
      return absl::OkStatus();
    }
    end -= want;
  }
  position_ = 0;
  return absl::OkStatus();
}

absl::Status StreamCursor::Fill() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  const uint64_t from = position_ + buffer_.size();
  if (from >= size_ || buffer_.size() >= buffer_size_) return absl::OkStatus();
  const auto want =
      static_cast<size_t>(std::min<uint64_t>(size_ - from, buffer_size_ - buffer_.size()));
  MUSTER_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(log_path_, O_RDONLY));
  MUSTER_ASSIGN_OR_RETURN(const std::string more, ReadAt(fd.get(), from, want, log_path_));
  if (more.size() < want) size_ = from + more.size();  // cut back after a failed sync
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
  do {
    key_ = std::max(key_, head_time_);
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
