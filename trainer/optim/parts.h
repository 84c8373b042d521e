#pragma once

#include <cstdint>
#include <vector>

#include "trainer/model/parameter.h"

namespace muster::optim {

// What of the parameters lies in elements [begin, end) of the buffers in which they follow each
// other: parameters of their own, views of one dimension.
std::vector<model::Parameter> PartsWithin(const std::vector<model::Parameter>& parameters,
                                          int64_t begin, int64_t end);

}  // namespace muster::optim
