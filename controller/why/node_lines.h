#pragma once

#include <string>
#include <vector>

#include "controller/why/why.h"

namespace muster::why {

// How each node proved its end, in rank order. Pure.
std::vector<NodeLine> NodeLines(const v1::Job& job);

// "pid 812 (alice) python train.py of rank 1, state D in nfs_wait".
std::string DescribeProcess(const v1::Survivor& process);

}  // namespace muster::why
