#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "muster/v1/control.pb.h"

namespace muster::cli {

// `muster logs --json`: one JSON object a line of a rank,
//   {"rank":3,"host":"node01","stream":"stdout","offset":120,"time_ns":...,"text":"loss 9.1"}
// A line that is not UTF-8 has U+FFFD in `text` and its bytes in `hex`; one that has no newline
// (the stream ended or is longer than 64 KiB) has `"partial":true`. Always valid JSON. Not
// thread-safe.
class LogJson {
 public:
  using Write = std::function<void(std::string_view)>;
  explicit LogJson(Write write) : write_(std::move(write)) {}

  void Append(const v1::LogsResponse& chunk);
  // Nothing more will come: half lines are written as partial.
  void Finish();

 private:
  struct Half {
    std::string host;
    std::string bytes;
    uint64_t offset = 0;  // of bytes[0]
    int64_t time_ns = 0;  // of the chunk that holds bytes[0]
  };
  void Emit(uint32_t rank, int stream, const Half& half, bool partial);

  const Write write_;
  std::map<std::pair<uint32_t, int>, Half> halves_;
};

}  // namespace muster::cli
