#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/config/train_config.h"
#include "trainer/model/llama.h"
#include "trainer/optim/adamw.h"
#include "trainer/parallel/groups.h"

namespace muster::engine {

// What happens to a CPU model's gradients once all micro-batches have added to them: their sum over
// the ranks, the norm, an AdamW step. With --use-distributed-optimizer the ranks that have the same
// parameters (data x context) each take one consecutive, equal piece of the buffers: they get the
// sum of its gradients alone, have the moments of it alone, and pass its new values on to the
// others. A tied embedding's copies stay equal: the last stage takes the first one's. All ranks of
// the world make the same calls. One thread.
class CpuOptimizer {
 public:
  // The buffers of `model` have a length that Padding() divides. `model` and `groups` outlive this.
  CpuOptimizer(const config::TrainConfig& config, const parallel::Groups& groups,
               model::Llama* model);

  static bool IsDistributed(const config::TrainConfig& config, const parallel::Groups& groups);
  static int64_t Padding(const config::TrainConfig& config, const parallel::Groups& groups);

  void ReduceGradients();
  // Divides the gradients by `tokens` (at least 1); their L2 norm over the whole model.
  double Normalize(double tokens);
  // The first parameter with a gradient that is not finite; empty when there is none.
  std::string NonFiniteGradient() const;
  void Step(const optim::LearningRates& rates, double coefficient);

  optim::AdamW& adam() { return *adam_; }
  bool distributed() const { return distributed_; }

  // <parameter>.exp_avg and <parameter>.exp_avg_sq of this rank's parameters: live views, or copies
  // put together from the ranks' pieces, which have to be stored again.
  std::vector<std::pair<std::string, at::Tensor>> FetchMoments();
  void StoreMoments(const std::vector<std::pair<std::string, at::Tensor>>& moments);

 private:
  at::Tensor Mine(const at::Tensor& buffer) const { return buffer.narrow(0, begin_, length_); }

  const parallel::Groups& groups_;
  model::Llama& model_;
  const bool distributed_;
  int64_t begin_ = 0, length_ = 0;       // of this rank's piece of the buffers
  std::vector<model::Parameter> owned_;  // what this rank steps
  std::unique_ptr<optim::AdamW> adam_;
};

}  // namespace muster::engine
