#include "trainer/model/pipeline.h"

#include <map>
#include <utility>
#include <vector>

namespace muster::model {
namespace {

using parallel::Step;

// One call's micro-batches on their way through this rank's stages.
class Pipeline {
 public:
  Pipeline(Llama& llama, const parallel::Groups& groups, const MicroBatchSource& source,
           bool training)
      : llama_(llama), groups_(groups), source_(source), training_(training) {}

  PipelineSums Run(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      if (step.forward) {
        Forward(step);
      } else {
        Backward(step);
      }
    }
    groups_.forward->Flush();
    groups_.backward->Flush();
    return sums_;
  }

 private:
  void Forward(const Step& step) {
    Stage& stage = StageOf(step);
    const MicroBatch micro_batch = source_(step.micro_batch);
    at::Tensor x_TC;
    if (!stage.chunk().embedding) {
      x_TC = Receive(*groups_.forward, Before(),
                     stage.NewActivation(micro_batch.batch.tokens_BS.numel()));
    }
    Pass pass = stage.Forward(micro_batch.batch, x_TC, training_, micro_batch.loss_weight);
    if (stage.chunk().head) {
      sums_.loss += pass.sum.loss.item<double>();
      sums_.tokens += pass.sum.tokens.item<double>();
    } else {
      groups_.forward->Post(std::move(pass.activation_TC), After());
    }
    if (training_) passes_[{step.chunk, step.micro_batch}] = std::move(pass);
  }

  void Backward(const Step& step) {
    Stage& stage = StageOf(step);
    Pass pass = std::move(passes_.extract({step.chunk, step.micro_batch}).mapped());
    at::Tensor dy_TC;
    if (!stage.chunk().head) {
      dy_TC = Receive(*groups_.backward, After(),
                      stage.NewActivation(pass.context->batch() * pass.context->positions()));
    }
    const at::Tensor dx_TC = stage.Backward(std::move(pass), dy_TC);
    if (!stage.chunk().embedding) groups_.backward->Post(dx_TC, Before());
  }

  static at::Tensor Receive(parallel::Communicator& group, int64_t from, at::Tensor tensor) {
    group.Receive(tensor, from);
    return tensor;
  }

  Stage& StageOf(const Step& step) { return llama_.stages().at(static_cast<size_t>(step.chunk)); }
  // Chunks go round the pipeline: the first stage's second comes after the last stage's first.
  int64_t Before() const {
    return (groups_.coordinate.pipeline + groups_.sizes.pipeline - 1) % groups_.sizes.pipeline;
  }
  int64_t After() const { return (groups_.coordinate.pipeline + 1) % groups_.sizes.pipeline; }

  Llama& llama_;
  const parallel::Groups& groups_;
  const MicroBatchSource& source_;
  const bool training_;
  std::map<std::pair<int64_t, int64_t>, Pass> passes_;  // by chunk and micro-batch
  PipelineSums sums_;
};

}  // namespace

PipelineSums RunPipeline(Llama& llama, const parallel::Groups& groups,
                         const parallel::PipelineShape& shape, const MicroBatchSource& source) {
  return Pipeline(llama, groups, source, /*training=*/true)
      .Run(parallel::PipelineSchedule(shape, groups.coordinate.pipeline));
}

PipelineSums EvaluatePipeline(Llama& llama, const parallel::Groups& groups,
                              const parallel::PipelineShape& shape,
                              const MicroBatchSource& source) {
  return Pipeline(llama, groups, source, /*training=*/false).Run(parallel::ForwardSchedule(shape));
}

}  // namespace muster::model
