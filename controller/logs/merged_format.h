#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "muster/v1/worker.pb.h"

// A line of a node's merged log `<name>.log.<n>.<host>` (docs/logs.md). Pure.
//
//   <rank, right-aligned> <out|err> <mark> <bytes of the stream, verbatim>\n
//
// Mark `|`: the stream has a newline here. Mark `+`: it has none; the line was cut because it is
// long, or because the stream ended, and goes on, if at all, in the next line of this rank and
// stream. So the bytes of each stream can be counted from the merged file alone, which is how a
// restarted controller finds where to go on.

namespace muster::logs {

// Longest piece of a stream in one merged line.
inline constexpr size_t kMaxMergedLine = 64 << 10;

struct MergedLine {
  uint32_t rank = 0;
  v1::Stream stream = v1::STREAM_UNSPECIFIED;
  bool cut = false;
  std::string_view text;  // without the newline
};

// Appends one line to `out`. `width`: RankWidth of the job's world.
void AppendMergedLine(const MergedLine& line, int width, std::string& out);

// `line` without its newline; nothing if it is no merged line.
std::optional<MergedLine> ParseMergedLine(std::string_view line, int width);

// Bytes of the stream that the line stands for.
inline uint64_t StreamBytes(const MergedLine& line) {
  return line.text.size() + (line.cut ? 0 : 1);
}

// Turns stream bytes into merged lines: `data` begins at a line's start. Takes whole lines, pieces
// of kMaxMergedLine, and with `ended` the rest as well; returns how many bytes it took.
size_t AppendMergedLines(std::string_view data, bool ended, MergedLine tag, int width,
                         std::string& out);

}  // namespace muster::logs
