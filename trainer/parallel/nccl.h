#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "trainer/parallel/communicator.h"

namespace muster::parallel {

// Collectives on CUDA tensors by NCCL, for the ranks of `control` (same ranks, same order), which
// only carries NCCL's identifier and may end afterwards. `device` is this process's CUDA device and
// becomes the current one. Calls are ordered on the current stream and return before they are
// carried out; Synchronize() waits for them, at most `timeout`, and is where a peer that has gone
// is noticed: the group is then aborted, and every further call throws. One thread uses a
// communicator. Throws CommError, also when a peer does not come within `timeout`.
std::unique_ptr<Communicator> ConnectNccl(Communicator& control, int device,
                                          std::chrono::milliseconds timeout);

}  // namespace muster::parallel
