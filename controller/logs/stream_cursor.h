#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "controller/logs/log_source.h"
#include "controller/logs/times_reader.h"
#include "muster/v1/control.pb.h"

namespace muster::logs {

// A place in one stream's files that moves forward by whole lines and knows when each was written.
// Files are opened only for the moment of a read, so that a reader of thousands of streams needs
// few descriptors. One thread.
class StreamCursor {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // A line without its end is given out after this time without growth: a prompt, a progress bar.
  static constexpr std::chrono::milliseconds kPartialDelay{100};
  static constexpr size_t kMaxRun = 64 << 10;

  // `buffer_size`: bytes read at a time; longer lines are given out in pieces.
  StreamCursor(const std::string& folder, uint32_t rank, std::string host, v1::Stream stream,
               size_t buffer_size);

  // The file holds `size` bytes now; `ended`: and will not hold more.
  void Extend(uint64_t size, bool ended);
  // Skips to the last `lines` lines of what Extend said.
  absl::Status SeekTail(uint64_t lines);
  // Skips lines that were written before this time; the first one that counts may be still to come.
  absl::Status SeekTime(int64_t since_ns);
  // Take tells the time of each line that has another one than the line before.
  void WithTimes() { with_times_ = true; }
  // An unfinished line is kept back until it ends.
  void WholeLines() { whole_lines_ = true; }

  // Whether Take has something to give. Reads ahead.
  absl::StatusOr<bool> Ready(TimePoint now);
  // After Ready said yes: the time of the next line, never falling within a stream; lowest in the
  // middle of a line, so that its pieces stay together.
  int64_t key() const {
    return mid_line_ ? std::numeric_limits<int64_t>::min() : std::max(key_, head_time_);
  }
  // The next line, and those after it that are not later than `until`, up to kMaxRun bytes.
  v1::LogsResponse Take(int64_t until);

  bool has_unread() const { return position_ < size_; }

 private:
  std::string_view Buffered() const { return std::string_view(buffer_).substr(begin_); }
  absl::StatusOr<std::string> ReadOn(uint64_t from, size_t want);
  absl::Status Fill();
  bool FindHead();

  const LogSource log_;
  const uint32_t rank_;
  const std::string host_;
  const v1::Stream stream_;
  const size_t buffer_size_;
  TimesReader times_;

  uint64_t position_ = 0;  // of Buffered()[0]
  uint64_t size_ = 0;
  bool ended_ = false;
  std::string buffer_;
  size_t begin_ = 0;

  size_t head_ = 0;  // bytes of the next line or piece
  int64_t head_time_ = 0;
  int64_t key_ = 0;
  bool mid_line_ = false;
  std::optional<TimePoint> partial_since_;  // the unfinished line has not grown since
  bool with_times_ = false;
  bool whole_lines_ = false;
};

}  // namespace muster::logs
