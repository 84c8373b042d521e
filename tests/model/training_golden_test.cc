#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/model/golden.h"
#include "tests/model/tiny_llama.h"
#include "trainer/optim/adamw.h"
#include "trainer/optim/gradients.h"
#include "trainer/optim/lr_schedule.h"

// 30 training iterations against tests/golden/llama/train: loss, gradient norm, rates and
// parameters, for each variant. Tolerances: that README, section 2.

namespace muster {
namespace {

using config::DType;
using nlohmann::json;

constexpr int64_t kGlobalBatch = 8;

// The loop that a trainer would run, on one rank.
class TinyTrainer {
 public:
  TinyTrainer(const config::ModelConfig& config, int64_t micro_batch, bool masked, bool bf16_grads)
      : micro_batch_(micro_batch),
        llama_(testing::LoadTinyLlama(config)),
        adam_(&llama_->parameters(), {0.9, 0.95, 1e-8, 0.1}) {
    const checkpoint::SafetensorsReader data(testing::GoldenPath("train/data.safetensors"));
    samples_ = data.Load("samples");
    if (masked) mask_ = data.Load("loss_mask");
    if (bf16_grads) llama_->UseBf16Gradients();
    const json config_json = testing::GoldenJson("train/config.json")["training"];
    standard_ = {optim::LrDecayStyle::kCosine,  config_json["lr"],
                 config_json["min_lr"],         0,
                 config_json["warmup_samples"], config_json["decay_samples"]};
    decoupled_ = standard_;
    decoupled_.max_lr = config_json["decoupled_lr"];
    decoupled_.min_lr = config_json["decoupled_min_lr"];
  }

  struct Row {
    double loss, tokens, norm, clip, lr, decoupled_lr, next_lr;
  };

  Row Iterate() {
    llama_->BeginIteration();
    llama_->gradient_buffer().zero_();
    Row row{};
    for (int64_t i = 0; i < kGlobalBatch; i += micro_batch_) {
      const model::LossSum sum = llama_->ForwardBackward(
          testing::SampleBatch(samples_, mask_, consumed_ + i, micro_batch_));
      row.loss += sum.loss.item<double>();
      row.tokens += sum.tokens.item<double>();
    }
    optim::DivideByTokens(llama_->gradient_buffer(), row.tokens);
    row.loss /= row.tokens;
    row.norm = optim::GradientNorm(llama_->gradient_buffer());
    row.clip = optim::ClipCoefficient(row.norm, 1.0);
    row.lr = standard_.At(consumed_);
    row.decoupled_lr = decoupled_.At(consumed_);
    adam_.Step({row.lr, row.decoupled_lr}, row.clip);
    consumed_ += kGlobalBatch;
    row.next_lr = standard_.At(consumed_);
    return row;
  }

  model::Llama& llama() { return *llama_; }

 private:
  int64_t micro_batch_;
  std::unique_ptr<model::Llama> llama_;
  optim::AdamW adam_;
  at::Tensor samples_, mask_;
  optim::LrSchedule standard_, decoupled_;
  int64_t consumed_ = 0;
};

struct Tolerance {
  double factor, loss_floor, norm_floor;
};
constexpr Tolerance kExact = {5, 1e-6, 3e-6};
constexpr Tolerance kChaotic = {3, 5e-4, 5e-3};

void ExpectRelative(double actual, double expected, double tolerance, const char* what) {
  EXPECT_LE(std::abs(actual - expected), tolerance * std::abs(expected))
      << what << ": " << actual << " instead of " << expected;
}

// Norms of all parameters, zero-centred as ours are.
void ExpectParameterNorms(const config::ModelConfig& config, model::Llama& llama,
                          const json& expected, double tolerance) {
  for (auto& [name, tensor] : testing::HfTensors(config, llama, model::HfKind::kWeights)) {
    const at::Tensor value = tensor.dim() == 1 ? tensor.sub(1) : tensor;
    ExpectRelative(value.norm().item<double>(), expected[name]["norm"].get<double>(), tolerance,
                   name.c_str());
  }
}

struct Case {
  const char* file;
  DType dtype = DType::kFp32;
  config::Fp8Recipe recipe = config::Fp8Recipe::kNone;
  config::AmaxAlgo algo = config::AmaxAlgo::kMax;
};

class TrainingGoldenTest : public ::testing::TestWithParam<Case> {
 protected:
  config::ModelConfig Config() const {
    config::ModelConfig config = testing::TinyConfig(GetParam().dtype);
    config.fp8.recipe = GetParam().recipe;
    config.fp8.amax_history_len = 16;
    config.fp8.amax_algo = GetParam().algo;
    config.fp8.round_outputs_to_bf16 =
        std::string(GetParam().file).find("bf16out") != std::string::npos;
    return config;
  }
};

TEST_P(TrainingGoldenTest, ThirtyIterationsMatch) {
  const json golden = testing::GoldenJson("train/" + std::string(GetParam().file) + ".json");
  const json& settings = golden["settings"];
  const config::ModelConfig config = Config();
  const bool fp8 = config.fp8.recipe != config::Fp8Recipe::kNone;
  const Tolerance tolerance = fp8 ? kChaotic : kExact;
  TinyTrainer trainer(config, settings["micro_batch_size"], settings["loss_mask"],
                      settings["bf16_grad_buffer"]);
  double loss_spread = 0, norm_spread = 0, mean_loss = 0, expected_mean_loss = 0;
  for (const json& expected : golden["iterations"]) {
    SCOPED_TRACE("iteration " + expected["iteration"].dump());
    const TinyTrainer::Row row = trainer.Iterate();
    loss_spread = std::max(loss_spread, expected["lm_loss_spread"].get<double>());
    norm_spread = std::max(norm_spread, expected["grad_norm_spread"].get<double>());
    ExpectRelative(row.loss, expected["lm_loss_f64"],
                   std::max(tolerance.loss_floor, tolerance.factor * loss_spread), "loss");
    const double norm_tolerance = std::max(tolerance.norm_floor, tolerance.factor * norm_spread);
    ExpectRelative(row.norm, expected["grad_norm_f64"], norm_tolerance, "gradient norm");
    ExpectRelative(row.clip, expected["clip_coef"], 2 * norm_tolerance, "clip coefficient");
    EXPECT_EQ(row.tokens, expected["tokens"].get<double>());
    ExpectRelative(row.lr, expected["lr_used"], 1e-12, "learning rate");
    ExpectRelative(row.decoupled_lr, expected["decoupled_lr_used"], 1e-12, "decoupled rate");
    ExpectRelative(row.next_lr, expected["lr_logged"], 1e-12, "logged rate");
    mean_loss += row.loss / 30;
    expected_mean_loss += expected["lm_loss_f64"].get<double>() / 30;
    const std::string iteration = expected["iteration"].dump();
    if (!fp8 && golden["params_at"].contains(iteration) &&
        golden["params_at"][iteration]["model.norm.weight"].contains("norm")) {
      ExpectParameterNorms(config, trainer.llama(), golden["params_at"][iteration], 5e-5);
    }
  }
  ExpectRelative(mean_loss, expected_mean_loss, fp8 ? 3e-3 : 1e-6, "mean loss");
}

INSTANTIATE_TEST_SUITE_P(
    Variants, TrainingGoldenTest,
    ::testing::Values(Case{"plain_mbs1"}, Case{"plain_mbs2"}, Case{"plain_mbs2", DType::kFp64},
                      Case{"masked_mbs1"}, Case{"masked_mbs2"}, Case{"bf16grad_mbs1"},
                      Case{"tensorwise_mbs1", DType::kFp32, config::Fp8Recipe::kTensorwise},
                      Case{"tensorwise_mbs2", DType::kFp32, config::Fp8Recipe::kTensorwise},
                      Case{"delayed_mbs1", DType::kFp32, config::Fp8Recipe::kDelayed},
                      Case{"delayed_mbs2", DType::kFp32, config::Fp8Recipe::kDelayed},
                      Case{"delayed_recent_mbs2", DType::kFp32, config::Fp8Recipe::kDelayed,
                           config::AmaxAlgo::kMostRecent},
                      Case{"delayed_bf16out_mbs2", DType::kFp32, config::Fp8Recipe::kDelayed}),
    [](const auto& instance) {
      return std::string(instance.param.file) +
             (instance.param.dtype == DType::kFp64 ? "_fp64" : "");
    });

TEST(TrainingTest, FirstIterationRunsAtRateZeroAndFinalParametersMatch) {
  const config::ModelConfig config = testing::TinyConfig(DType::kFp32);
  TinyTrainer trainer(config, 1, false, false);
  const auto start = testing::HfTensors(config, trainer.llama(), model::HfKind::kWeights);
  std::map<std::string, at::Tensor> before;
  for (const auto& [name, tensor] : start) before[name] = tensor.clone();
  trainer.Iterate();
  for (const auto& [name, tensor] :
       testing::HfTensors(config, trainer.llama(), model::HfKind::kWeights)) {
    EXPECT_TRUE(tensor.equal(before[name])) << name;
  }
  for (int iteration = 2; iteration <= 30; ++iteration) trainer.Iterate();
  const checkpoint::SafetensorsReader final(
      testing::GoldenPath("train/plain_mbs1.final.safetensors"));
  for (auto& [name, tensor] :
       testing::HfTensors(config, trainer.llama(), model::HfKind::kWeights)) {
    const at::Tensor value = tensor.dim() == 1 ? tensor.sub(1) : tensor;
    const at::Tensor expected = final.Load(name);
    EXPECT_LE(testing::RelativeError(value, expected), 5e-5) << name;
    EXPECT_LE(value.sub(expected).abs().max().item<double>(), 1e-3) << name;
  }
}

}  // namespace
}  // namespace muster
