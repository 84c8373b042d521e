#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "muster/v1/control.pb.h"

namespace muster::cli {

// One line of a rank, or a piece of one.
struct LogLine {
  uint32_t attempt = 0;
  uint32_t rank = 0;
  std::string_view host;
  v1::Stream stream = v1::STREAM_UNSPECIFIED;
  uint64_t offset = 0;    // of text[0] in the stream's file
  int64_t time_ns = 0;    // when it was begun; 0 = unknown
  std::string_view text;  // without the newline
  bool partial = false;   // no newline: longer than kLongest, or the stream ended
};

// Cuts the runs of a Logs call into lines. Bytes that were there before (a resumed connection sends
// them again) are passed over by their offset; memory is bounded by kLongest a stream. Not
// thread-safe.
class LogLines {
 public:
  static constexpr size_t kLongest = 64 << 10;
  using Sink = std::function<void(const LogLine&)>;

  explicit LogLines(Sink sink) : sink_(std::move(sink)) {}

  void Append(const v1::LogsResponse& run);
  // Nothing more will come: half lines are given out as partial.
  void Finish();

 private:
  using Key = std::tuple<uint32_t, uint32_t, int>;  // attempt, rank, stream
  struct Half {
    std::string host;
    std::string bytes;
    uint64_t offset = 0;  // of bytes[0]
    int64_t time_ns = 0;
    uint64_t next_offset = 0;
  };
  void Emit(const Key& key, Half& half, bool partial);

  const Sink sink_;
  std::map<Key, Half> halves_;
};

// The time of a run's byte at `offset`, asked in rising order: `next` counts the times passed.
int64_t TimeInRun(const v1::LogsResponse& run, uint64_t offset, int& next);

}  // namespace muster::cli
