#pragma once

#include <memory>

#include "trainer/device/ops.h"

namespace muster::device {

// Ops on host memory by the CPU references: the planned model without a GPU.
std::unique_ptr<Ops> MakeHostOps();

}  // namespace muster::device
