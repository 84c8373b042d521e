#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace muster::parallel {

enum class ReduceOp { kSum, kMax };

// Collectives of one group of ranks. Implementations: SingleRank (a group of one), Gloo (c10d), and
// later NCCL and in-process threads. Every rank of the group makes the same calls in the same
// order. Tensors are contiguous; a call returns when its result is in the tensor (CPU) or ordered
// on the current stream (CUDA). Throws CommError when a peer is gone or the time-out has passed.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;
  virtual void AllReduce(at::Tensor tensor, ReduceOp op) = 0;
  virtual void Broadcast(at::Tensor tensor, int64_t root) = 0;
  // output: size() times the elements of input, in rank order.
  virtual void AllGather(at::Tensor output, at::Tensor input) = 0;
  // input: size() times the elements of output; rank r gets the sum of slice r.
  virtual void ReduceScatter(at::Tensor output, at::Tensor input) = 0;
  virtual void Barrier() = 0;
};

}  // namespace muster::parallel
