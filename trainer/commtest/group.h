#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/commtest/options.h"
#include "trainer/commtest/pattern.h"
#include "trainer/config/environment.h"
#include "trainer/parallel/communicator.h"

namespace muster::commtest {

// The ranks under test, as one of them sees them.
class Group {
 public:
  // Takes over both; `control` is a group on the CPU, `data` null when it is that same one.
  Group(std::unique_ptr<parallel::Communicator> control,
        std::unique_ptr<parallel::Communicator> data, at::Device device);

  int64_t rank() const { return control_->rank(); }
  int64_t size() const { return control_->size(); }
  // What is measured.
  parallel::Communicator& data() { return data_ ? *data_ : *control_; }
  // A tensor where data() works.
  at::Tensor Allocate(int64_t count, Type type) const;
  void FillWith(at::Tensor& tensor, const Content& content) const;
  int64_t WrongIn(const at::Tensor& tensor, const Content& content) const;

  // For what the ranks tell each other beside the measurements; over the CPU.
  void Barrier() { control_->Barrier(); }
  void Reduce(std::vector<double>& values, parallel::ReduceOp op);
  std::vector<std::string> Gather(const std::string& text);

 private:
  std::unique_ptr<parallel::Communicator> control_;
  std::unique_ptr<parallel::Communicator> data_;
  at::Device device_;
};

// Meets the other ranks. Throws ConfigError when the backend is not to be had here, CommError.
Group Connect(const Options& options, const config::RankEnvironment& env);

// "gloo" or "nccl": what Connect chooses.
std::string BackendName(const Options& options);

}  // namespace muster::commtest
