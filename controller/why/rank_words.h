#pragma once

#include <vector>

#include "controller/why/why.h"

namespace muster::why {

// What the job's ranks wrote last, from the controller's files of its newest attempt; the tails of
// `tails`. What can't be read is missing. Any thread.
Words ReadWords(const v1::Job& job, const std::vector<uint32_t>& tails);

// The iteration that a line tells of: a trainer's event, or Megatron's log line ("iteration 17/
// 200 | ..."). Pure.
std::optional<int64_t> IterationOf(const std::string& line);

}  // namespace muster::why
