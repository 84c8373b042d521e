#pragma once

#include <string>
#include <vector>

#include "controller/why/why.h"

namespace muster::why {

// The rules that know the failure in `why` (its causes, kernel evidence and remarks are there
// already), the likeliest first: words of the error text before those of the kernel's log before
// those of the other lines, and within each in the rules' order. A rule whose search had to be
// given up becomes a remark. Pure.
void AddHints(const RuleSet& rules, const Words& words, Why& why);

}  // namespace muster::why
