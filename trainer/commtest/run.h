#pragma once

#include <functional>
#include <string>

#include "trainer/commtest/report.h"

namespace muster::commtest {

// The whole test of one rank; all ranks get the same report. `print` hears the text as it comes.
Report RunTest(Group& group, const Options& options, const std::string& host,
               const std::function<void(const std::string&)>& print);

}  // namespace muster::commtest
