#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "muster/v1/control.pb.h"

namespace muster::cli {

// How far a job is on its way to running. A value.
struct Progress {
  std::string text;                  // "connecting 61/64 nodes"; empty: nothing to count
  std::vector<std::string> waiting;  // hosts that it waits for, in the order of the plan
  std::string trouble{};             // what the first of them that can't be reached says
  bool over = false;                 // it runs, or will not
};

// From the job and the nodes as the controller shows them. Pure.
Progress DescribeProgress(const v1::Job& job, const v1::ListNodesResponse& nodes);

// When to show what of it: on a terminal one line that is drawn over, elsewhere a line of its own
// for what takes long, ever more rarely. Trouble is shown at once, hosts are named once a phase has
// lasted two seconds. Pure.
class ProgressDisplay {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit ProgressDisplay(bool live) : live_(live) {}

  // The line to show now; nothing: leave what is there.
  std::optional<std::string> Next(const Progress& progress, TimePoint now);

 private:
  const bool live_;
  std::string phase_;  // the text's first word
  TimePoint since_{};
  std::string shown_;
  std::string trouble_;  // the last that was shown
  std::chrono::milliseconds pause_{0};
  TimePoint due_{};
};

}  // namespace muster::cli
