#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "trainer/parallel/communicator.h"

namespace muster::testing {

// Bytes of the tensors that a rank gave to its collectives and messages, by operation: the larger
// of input and output (all-gather, reduce-scatter), what was sent (messages).
using Traffic = std::map<std::string, int64_t>;

// Counts what passes through another communicator.
class Counting : public parallel::Communicator {
 public:
  // `traffic` outlives this.
  Counting(std::unique_ptr<parallel::Communicator> inner, Traffic* traffic)
      : inner_(std::move(inner)), traffic_(*traffic) {}

  int64_t rank() const override { return inner_->rank(); }
  int64_t size() const override { return inner_->size(); }
  void AllReduce(at::Tensor tensor, parallel::ReduceOp op) override {
    Count("all-reduce", tensor);
    inner_->AllReduce(tensor, op);
  }
  void Broadcast(at::Tensor tensor, int64_t root) override {
    Count("broadcast", tensor);
    inner_->Broadcast(tensor, root);
  }
  void AllGather(at::Tensor output, at::Tensor input) override {
    Count("all-gather", output);
    inner_->AllGather(output, input);
  }
  void ReduceScatter(at::Tensor output, at::Tensor input) override {
    Count("reduce-scatter", input);
    inner_->ReduceScatter(output, input);
  }
  void Send(at::Tensor tensor, int64_t to) override {
    Count("send", tensor);
    inner_->Send(tensor, to);
  }
  void Receive(at::Tensor tensor, int64_t from) override { inner_->Receive(tensor, from); }
  void SendReceive(at::Tensor sent, int64_t to, at::Tensor received, int64_t from) override {
    Count("send", sent);
    inner_->SendReceive(sent, to, received, from);
  }
  void Post(at::Tensor tensor, int64_t to) override {
    Count("send", tensor);
    inner_->Post(tensor, to);
  }
  void Flush() override { inner_->Flush(); }
  void Barrier() override { inner_->Barrier(); }
  void Synchronize() override { inner_->Synchronize(); }

 private:
  void Count(const char* operation, const at::Tensor& tensor) {
    traffic_[operation] += static_cast<int64_t>(tensor.nbytes());
  }

  std::unique_ptr<parallel::Communicator> inner_;
  Traffic& traffic_;
};

}  // namespace muster::testing
