#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>

namespace muster::parallel {

enum class ReduceOp { kSum, kMax };

// Collectives of one group of ranks. Implementations: SingleRank (a group of one), Gloo (c10d),
// NCCL, and threads of one process in tests. Every rank of the group makes the same calls in the
// same order. Tensors are contiguous; a call returns when its result is in the tensor (CPU) or
// ordered on the current stream (CUDA). Throws CommError when a peer is gone or the time-out has
// passed.
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
  // Messages between two ranks of the group, which the other ranks do not take part in: what one
  // sends, the other receives, in the order of the calls.
  virtual void Send(at::Tensor tensor, int64_t to) = 0;
  virtual void Receive(at::Tensor tensor, int64_t from) = 0;
  // Both at the same time, so that every rank of a ring can make the same call.
  virtual void SendReceive(at::Tensor sent, int64_t to, at::Tensor received, int64_t from) = 0;
  // Like Send, but need not wait for the receiver: the tensor stays as it is until Flush(), which
  // returns when all such messages have left.
  virtual void Post(at::Tensor tensor, int64_t to) { Send(std::move(tensor), to); }
  virtual void Flush() {}
  virtual void Barrier() = 0;
  // Returns when all calls so far have been carried out on the device too (at once on the CPU).
  virtual void Synchronize() = 0;
};

}  // namespace muster::parallel
