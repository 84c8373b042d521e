#pragma once

#include <functional>
#include <string_view>
#include <utility>

#include "controller/cli/log_lines.h"
#include "muster/v1/control.pb.h"

namespace muster::cli {

// `muster logs --json`: one JSON object a line of a rank,
//   {"rank":3,"host":"node01","stream":"stdout","offset":120,"time_ns":...,"text":"loss 9.1"}
// with `"attempt":1` behind the stream for attempts after the first.
// A line that is not UTF-8 has U+FFFD in `text` and its bytes in `hex`; one that has no newline
// (the stream ended or is longer than 64 KiB) has `"partial":true`. Always valid JSON. Not
// thread-safe.
class LogJson {
 public:
  using Write = std::function<void(std::string_view)>;
  explicit LogJson(Write write)
      : write_(std::move(write)), lines_([this](const LogLine& line) { Emit(line); }) {}

  void Append(const v1::LogsResponse& chunk) { lines_.Append(chunk); }
  // Nothing more will come: half lines are written as partial.
  void Finish() { lines_.Finish(); }

 private:
  void Emit(const LogLine& line);

  const Write write_;
  LogLines lines_;
};

}  // namespace muster::cli
