#include <algorithm>
#include <memory>
#include <utility>

#include "trainer/config/layer_split.h"
#include "trainer/engine/cpu_optimizer.h"
#include "trainer/engine/engine.h"
#include "trainer/model/chunks.h"
#include "trainer/model/context_share.h"
#include "trainer/model/llama.h"
#include "trainer/model/pipeline.h"

namespace muster::engine {
namespace {

layers::ContextExchange ExchangeOf(const config::TrainConfig& config) {
  return config.cp_comm_type == "all_gather" ? layers::ContextExchange::kAllGather
                                             : layers::ContextExchange::kRing;
}

// model::Llama and AdamW on LibTorch tensors: the reference.
class CpuEngine : public Engine {
 public:
  CpuEngine(const config::TrainConfig& config, const parallel::Groups& groups)
      : groups_(groups),
        group_(config.microbatch_group_size_per_virtual_pipeline_stage.value_or(0)),
        model_(config.model, {.tensor = groups.tensor.get(),
                              .sequence_parallel = config.sequence_parallel,
                              .context = {groups.context.get(), ExchangeOf(config)},
                              .amax = groups.amax.get(),
                              .chunks = model::ChunksOfStage(config::SplitLayers(config),
                                                             groups.coordinate.pipeline),
                              .padding = CpuOptimizer::Padding(config, groups)}) {
    if (config.grad_reduce_in_bf16) model_.UseBf16Gradients();
    optimizer_ = std::make_unique<CpuOptimizer>(config, groups, &model_);
    for (const model::Parameter& p : model_.parameters()) {
      if (!p.duplicate) parameter_count_ += p.value.numel();
    }
  }

  int64_t parameter_count() const override { return parameter_count_; }

  void BeginIteration() override {
    model_.gradient_buffer().zero_();
    model_.BeginIteration();
    sums_ = {};
  }

  // A micro-batch's mean is a sum that counts 1 / tokens. As it is written here, one without masked
  // tokens counts once, and the gradients are rounded no more than those of sums.
  void ForwardBackward(const MicroBatches& micro_batches, Averaging averaging) override {
    const bool means = averaging == Averaging::kMicroBatches;
    double positions = 1;  // of a whole micro-batch; all have as many
    const model::PipelineSums sums =
        model::RunPipeline(model_, groups_, Shape(micro_batches), [&](int64_t number) {
          const MicroBatch micro_batch = micro_batches.load(number);
          model::MicroBatch result{MyShare(micro_batch.batch)};
          if (!means) return result;
          positions = static_cast<double>(micro_batch.batch.tokens_BS.numel());
          result.loss_weight = positions / std::max(micro_batch.tokens, 1.0);
          return result;
        });
    if (means) {
      const auto count = static_cast<double>(micro_batches.count * groups_.sizes.data);
      model_.gradient_buffer().mul_(1.0 / (positions * count));
    }
    Add(sums);
  }
  Sums TakeSums() override { return sums_; }
  Sums Evaluate(const MicroBatches& micro_batches) override {
    const model::PipelineSums sums =
        model::EvaluatePipeline(model_, groups_, Shape(micro_batches), [&](int64_t number) {
          return model::MicroBatch{MyShare(micro_batches.load(number).batch)};
        });
    return {sums.loss, sums.tokens};
  }

  void ReduceGradients() override { optimizer_->ReduceGradients(); }
  double Normalize(double tokens) override { return optimizer_->Normalize(tokens); }
  std::string NonFiniteGradient() override { return optimizer_->NonFiniteGradient(); }
  void Step(const optim::LearningRates& rates, double coefficient) override {
    optimizer_->Step(rates, coefficient);
  }

  int64_t step_count() const override { return optimizer_->adam().step_count(); }
  void set_step_count(int64_t count) override { optimizer_->adam().set_step_count(count); }
  bool SharesOptimizerState() const override { return optimizer_->distributed(); }
  State Fetch(Contents contents) override {
    if (contents == Contents::kWeights) return {model_.parameters(), {}, {}};
    return {model_.parameters(), optimizer_->FetchMoments(), model_.fp8_state()};
  }
  // Weights and FP8 state are live views.
  void Store(const State& state) override {
    if (!state.optimizer.empty()) optimizer_->StoreMoments(state.optimizer);
  }

 private:
  data::Batch MyShare(const data::Batch& batch) const {
    return model::ContextShare(batch, groups_.coordinate.context, groups_.sizes.context);
  }
  parallel::PipelineShape Shape(const MicroBatches& micro_batches) {
    return {.stages = groups_.sizes.pipeline,
            .chunks = static_cast<int64_t>(model_.stages().size()),
            .micro_batches = micro_batches.count,
            .group = group_};
  }
  void Add(const model::PipelineSums& sums) {
    sums_.loss += sums.loss;
    sums_.tokens += sums.tokens;
  }

  const parallel::Groups& groups_;
  const int64_t group_;
  model::Llama model_;
  std::unique_ptr<CpuOptimizer> optimizer_;
  int64_t parameter_count_ = 0;
  Sums sums_;
};

}  // namespace

std::unique_ptr<Engine> MakeCpuEngine(const config::TrainConfig& config,
                                      const parallel::Groups& groups) {
  return std::make_unique<CpuEngine>(config, groups);
}

}  // namespace muster::engine
