#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "trainer/commtest/group.h"
#include "trainer/commtest/options.h"

namespace muster::commtest {

// One line of the table.
struct SweepRow {
  Collective collective = Collective::kAllReduce;
  int64_t bytes = 0;
  int64_t count = 0;
  double seconds = 0;       // median over the calls of the slowest rank's time
  int64_t wrong = 0;        // elements, over all ranks and calls
  int64_t wrong_rank = -1;  // the first rank that had one
};

// Every collective in every size. Each measured call has fresh data and is checked. All ranks get
// the same rows; `done` hears each at once.
std::vector<SweepRow> Sweep(Group& group, const Options& options,
                            const std::function<void(const SweepRow&)>& done);

double Median(std::vector<double> values);

}  // namespace muster::commtest
