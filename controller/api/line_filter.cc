#include "controller/api/line_filter.h"

#include <string_view>
#include <utility>

#include "common/status.h"

namespace muster::api {

absl::StatusOr<LineFilter> LineFilter::Make(const std::string& pattern) {
  auto compiled = why::Pattern::Compile(pattern);
  if (!compiled.ok()) return Annotate(compiled.status(), "grep");
  return LineFilter(*std::move(compiled));
}

absl::StatusOr<std::vector<v1::LogsResponse>> LineFilter::Matches(
    const v1::LogsResponse& run) const {
  std::vector<v1::LogsResponse> found;
  const std::string_view data = run.data();
  int64_t time_ns = run.realtime_ns();
  int next_time = 0;
  bool open = false;  // found.back() ends where the line begins
  for (size_t at = 0; at < data.size();) {
    const size_t newline = data.find('\n', at);
    const size_t end = newline == std::string_view::npos ? data.size() : newline + 1;
    if (next_time < run.times_size() && run.times(next_time).offset() == run.offset() + at) {
      time_ns = run.times(next_time++).realtime_ns();
    }
    const std::string_view line = data.substr(at, end - at);
    const std::string_view text =
        newline == std::string_view::npos ? line : line.substr(0, line.size() - 1);
    const auto match = pattern_.Matches(text);
    if (!match.ok()) {
      return absl::InvalidArgumentError(
          "grep: the search was given up on a line of rank " + std::to_string(run.rank()) + ": " +
          std::string(match.status().message()) + "; a simpler pattern helps");
    }
    if (!*match) {
      open = false;
    } else if (open) {
      v1::LogsResponse& last = found.back();
      const int64_t told = last.times().empty() ? last.realtime_ns()
                                                : last.times(last.times_size() - 1).realtime_ns();
      if (time_ns != told) {
        v1::WriteTime& time = *last.add_times();
        time.set_offset(run.offset() + at);
        time.set_realtime_ns(time_ns);
      }
      last.mutable_data()->append(line);
    } else {
      v1::LogsResponse& next = found.emplace_back();
      next.set_rank(run.rank());
      next.set_host(run.host());
      next.set_stream(run.stream());
      next.set_offset(run.offset() + at);
      next.set_realtime_ns(time_ns);
      next.set_data(std::string(line));
      open = true;
    }
    at = end;
  }
  return found;
}

}  // namespace muster::api
