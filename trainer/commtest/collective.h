#pragma once

#include <cstdint>
#include <string>
#include <vector>

// The collectives that are measured, and nccl-tests' arithmetic of their figures. Pure.

namespace muster::commtest {

// kSendReceive: every rank sends to the next one and receives from the one before.
enum class Collective { kAllReduce, kAllGather, kReduceScatter, kBroadcast, kSendReceive };
const std::vector<Collective>& AllCollectives();
std::string Name(Collective collective);  // "all_reduce"

enum class Type { kFloat, kDouble, kInt32, kInt64 };
const std::vector<Type>& AllTypes();
std::string Name(Type type);  // "float"
int64_t SizeOf(Type type);

// What one rank gives and gets in a call of about `bytes`: "size" of the larger side, as nccl-tests
// has it. At least one element each.
struct Shape {
  int64_t count = 0;     // the column "count"
  int64_t sent = 0;      // elements that this rank gives
  int64_t received = 0;  // elements that it gets
  int64_t bytes = 0;     // the column "size"
};
Shape ShapeOf(Collective collective, Type type, int64_t bytes, int64_t ranks);

// "sum", or "none" where nothing is added up.
std::string ReduceName(Collective collective);

// size / time.
double AlgorithmBandwidth(int64_t bytes, double seconds);
// The algorithm bandwidth in terms of the slowest link, whatever the number of ranks: it can be
// compared with the hardware. https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
double BusBandwidth(Collective collective, int64_t bytes, double seconds, int64_t ranks);

}  // namespace muster::commtest
