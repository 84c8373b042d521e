#include "controller/cli/log_lines.h"

#include <algorithm>

namespace muster::cli {

int64_t TimeInRun(const v1::LogsResponse& run, uint64_t offset, int& next) {
  while (next < run.times_size() && run.times(next).offset() <= offset) ++next;
  return next == 0 ? run.realtime_ns() : run.times(next - 1).realtime_ns();
}

void LogLines::Emit(const Key& key, Half& half, bool partial) {
  sink_({.attempt = std::get<0>(key),
         .rank = std::get<1>(key),
         .host = half.host,
         .stream = static_cast<v1::Stream>(std::get<2>(key)),
         .offset = half.offset,
         .time_ns = half.time_ns,
         .text = half.bytes,
         .partial = partial});
  half.bytes.clear();
}

void LogLines::Append(const v1::LogsResponse& run) {
  const Key key(run.attempt(), run.rank(), run.stream());
  Half& half = halves_[key];
  half.host = run.host();
  std::string_view data = run.data();
  uint64_t offset = run.offset();
  if (offset < half.next_offset) {
    const uint64_t known = std::min<uint64_t>(half.next_offset - offset, data.size());
    data.remove_prefix(known);
    offset += known;
  }
  if (data.empty()) return;
  // Lines between were left out by a filter: the half line ends here.
  if (!half.bytes.empty() && offset > half.next_offset) Emit(key, half, true);
  int next_time = 0;
  while (!data.empty()) {
    if (half.bytes.empty()) {
      half.offset = offset;
      half.time_ns = TimeInRun(run, offset, next_time);
    }
    const size_t newline = data.find('\n');
    const size_t take = std::min(newline == std::string_view::npos ? data.size() : newline,
                                 kLongest - half.bytes.size());
    half.bytes.append(data.substr(0, take));
    const bool ended = take < data.size() && data[take] == '\n';
    data.remove_prefix(take + (ended ? 1 : 0));
    offset += take + (ended ? 1 : 0);
    if (ended || half.bytes.size() >= kLongest) Emit(key, half, !ended);
  }
  half.next_offset = offset;
}

void LogLines::Finish() {
  for (auto& [key, half] : halves_) {
    if (!half.bytes.empty()) Emit(key, half, true);
  }
}

}  // namespace muster::cli
