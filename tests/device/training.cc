#include "tests/device/training.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include <cmath>
#include <cstdio>

#include "trainer/device/optimizer.h"
#include "trainer/model/llama.h"
#include "trainer/optim/adamw.h"
#include "trainer/optim/gradients.h"

namespace muster::device {
namespace {

constexpr int kSteps = 3, kMicroBatches = 2;
constexpr int64_t kBatch = 2;
constexpr double kClip = 1.0, kRate = 2e-3;
const optim::AdamWConfig kAdam{0.9, 0.95, 1e-8, 0.1};

// Random tokens; every seventh label does not count.
data::Batch MakeBatch(const config::ModelConfig& config, uint32_t seed) {
  std::mt19937 engine(seed);
  const int64_t positions = config.seq_length;
  data::Batch batch{at::empty({kBatch, positions}, at::kLong),
                    at::empty({kBatch, positions}, at::kLong),
                    at::ones({kBatch, positions}, at::kFloat)};
  for (int64_t i = 0; i < kBatch * positions; ++i) {
    // Few different tokens, so that one embedding row has several positions.
    batch.tokens_BS.data_ptr<int64_t>()[i] = static_cast<int64_t>(engine() % 100);
    batch.labels_BS.data_ptr<int64_t>()[i] =
        static_cast<int64_t>(engine() % static_cast<uint32_t>(config.padded_vocab_size));
    if (i % 7 == 0) batch.loss_mask_BS.data_ptr<float>()[i] = 0;
  }
  return batch;
}

uint32_t Seed(int step, int micro_batch) {
  return static_cast<uint32_t>(100 * step + micro_batch);
}

double RelativeError(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor expected = b.to(at::kDouble);
  return a.to(at::kDouble).sub(expected).norm().item<double>() / expected.norm().item<double>();
}

at::Tensor Flat(Weights& weights, Weights::Part part) {
  std::vector<at::Tensor> parts;
  for (const Weight& weight : weights.all()) {
    parts.push_back(at::empty({weight.count()}, at::kFloat));
    weights.Download(weight, part, parts.back().data_ptr<float>());
  }
  return at::cat(parts);
}

}  // namespace

config::ModelConfig SmallModel(const TrainingCase& of) {
  config::ModelConfig config;
  config.num_layers = 3;
  config.hidden_size = 128;
  config.ffn_hidden_size = 320;
  config.num_attention_heads = 4;
  config.num_query_groups = 2;
  config.kv_channels = 64;
  config.padded_vocab_size = 512;
  config.seq_length = 64;
  config.max_position_embeddings = 64;
  config.apply_layernorm_1p = true;
  config.untie_embeddings_and_output_weights = !of.tied;
  config.params_dtype = config::DType::kBf16;
  config.fp8.recipe = of.recipe;
  config.fp8.amax_history_len = 4;
  config.fp8.amax_algo = config::AmaxAlgo::kMax;
  config.fp8.round_outputs_to_bf16 = true;
  return config;
}

Trace TrainReference(const config::ModelConfig& config) {
  model::Llama llama(config);
  optim::AdamW adam(&llama.parameters(), kAdam);
  Trace trace;
  for (int step = 0; step < kSteps; ++step) {
    llama.gradient_buffer().zero_();
    llama.BeginIteration();
    double loss = 0, tokens = 0;
    for (int k = 0; k < kMicroBatches; ++k) {
      const model::LossSum sum = llama.ForwardBackward(MakeBatch(config, Seed(step, k)));
      loss += sum.loss.item<double>();
      tokens += sum.tokens.item<double>();
    }
    optim::DivideByTokens(llama.gradient_buffer(), tokens);
    trace.losses.push_back(loss / tokens);
    trace.norms.push_back(optim::GradientNorm(llama.gradient_buffer()));
    trace.gradients.push_back(llama.gradient_buffer().clone());
    adam.Step({kRate, kRate}, optim::ClipCoefficient(trace.norms.back(), kClip));
  }
  std::vector<at::Tensor> weights;
  for (const model::Parameter& p : llama.parameters()) weights.push_back(p.value.flatten());
  trace.weights = at::cat(weights);
  const model::LossSum sum = llama.Evaluate(MakeBatch(config, 999));
  trace.held_out = sum.loss.item<double>() / sum.tokens.item<double>();
  return trace;
}

Trace TrainPlanned(const config::ModelConfig& config, std::unique_ptr<Ops> ops,
                   const StateTypes& types, const Recompute& recompute) {
  Shape shape{.model = config, .batch = kBatch};
  shape.head_tokens = 64;  // two chunks
  shape.recomputed_layers = recompute.layers;
  shape.recompute_swiglu = recompute.swiglu;
  Model model(std::move(ops), shape, types, nullptr);
  Optimizer optimizer(&model, kAdam);
  Trace trace;
  for (int step = 0; step < kSteps; ++step) {
    model.BeginIteration();
    for (int k = 0; k < kMicroBatches; ++k) {
      model.ForwardBackward(MakeBatch(config, Seed(step, k)));
    }
    const Model::Sums sums = model.TakeSums();
    trace.losses.push_back(sums.loss / sums.tokens);
    trace.norms.push_back(optimizer.Normalize(sums.tokens));
    trace.gradients.push_back(Flat(model.weights(), Weights::Part::kGradient).div_(sums.tokens));
    optimizer.Step({kRate, kRate}, optim::ClipCoefficient(trace.norms.back(), kClip));
  }
  trace.weights = Flat(model.weights(), Weights::Part::kValue);
  model.BeginSums();
  model.Evaluate(MakeBatch(config, 999));
  const Model::Sums sums = model.TakeSums();
  trace.held_out = sums.loss / sums.tokens;
  return trace;
}

void ExpectAsGood(const TrainingCase& of, const Trace& planned) {
  const config::ModelConfig config = SmallModel(of);
  config::ModelConfig exact_config = config;
  exact_config.params_dtype = config::DType::kFp32;
  exact_config.fp8 = config::Fp8Config{};
  const Trace reference = TrainReference(config), exact = TrainReference(exact_config);

  for (size_t step = 0; step < exact.losses.size(); ++step) {
    const double ours = RelativeError(planned.gradients[step], exact.gradients[step]);
    const double theirs = RelativeError(reference.gradients[step], exact.gradients[step]);
    const double apart = RelativeError(planned.gradients[step], reference.gradients[step]);
    std::printf(
        "%s step %zu: loss %.6f (CPU %.6f, exact %.6f); gradients off by %.2e of exact "
        "(CPU %.2e), %.2e of the CPU's\n",
        of.name.c_str(), step, planned.losses[step], reference.losses[step], exact.losses[step],
        ours, theirs, apart);
    EXPECT_LE(ours, 1.5 * theirs) << "step " << step;
    EXPECT_LE(apart, 2.5 * theirs) << "step " << step;
    // A loss is a mean over 220 tokens of which each is off by the logits' error, about the
    // gradients' relative one.
    EXPECT_NEAR(planned.losses[step], exact.losses[step], 0.3 * theirs * exact.losses[step]);
    EXPECT_NEAR(planned.norms[step], exact.norms[step], 1.5 * theirs * exact.norms[step]);
  }
  const double ours = RelativeError(planned.weights, exact.weights);
  const double theirs = RelativeError(reference.weights, exact.weights);
  std::printf("%s: weights off by %.2e of exact (CPU %.2e)\n", of.name.c_str(), ours, theirs);
  EXPECT_LE(ours, 1.5 * theirs);
  EXPECT_NEAR(planned.held_out, exact.held_out,
              1.5 * std::fabs(reference.held_out - exact.held_out) + 0.01);
}

}  // namespace muster::device
