#pragma once

#include <stdexcept>

#include "trainer/parallel/communicator.h"

namespace muster::parallel {

// A group of one: every collective is the identity. Any thread.
class SingleRank : public Communicator {
 public:
  int64_t rank() const override { return 0; }
  int64_t size() const override { return 1; }
  void AllReduce(at::Tensor, ReduceOp) override {}
  void Broadcast(at::Tensor, int64_t) override {}
  void AllGather(at::Tensor output, at::Tensor input) override {
    output.view_as(input).copy_(input);
  }
  void ReduceScatter(at::Tensor output, at::Tensor input) override {
    output.copy_(input.view_as(output));
  }
  // There is no other rank.
  void Send(at::Tensor, int64_t) override { throw std::logic_error("a group of one"); }
  void Receive(at::Tensor, int64_t) override { throw std::logic_error("a group of one"); }
  void SendReceive(at::Tensor sent, int64_t, at::Tensor received, int64_t) override {
    received.copy_(sent);
  }
  void Barrier() override {}
  void Synchronize() override {}
};

}  // namespace muster::parallel
