// The gradients of a Llama in FP8 against those in bf16, from the same weights and text: their
// ratio of signal to noise, for all together and for each kind of weight. The weights have been
// trained for some steps, as gradients of weights that are still random say little.

#include <ATen/ops/empty.h>
#include <cuda_runtime_api.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/gpu_main.h"
#include "tests/bench/gpu_models.h"
#include "tests/bench/gpu_watch.h"
#include "tests/bench/report.h"
#include "trainer/device/cuda_ops.h"
#include "trainer/device/model.h"
#include "trainer/device/optimizer.h"
#include "trainer/optim/gradients.h"
#include "trainer/tensor/cuda_check.h"

namespace muster::bench {
namespace {

using device::Weight;
using device::Weights;

struct Options {
  std::string model = "1b";
  int64_t layers = 0, seq = 4096, micro_batch = 2, steps = 100;
  double rate = 3e-4;
  std::string text, cache;
  std::vector<std::string> recipes = {"delayed", "tensorwise"};
  bool json = false;
};

// Host copies of one part of all weights.
using Tensors = std::vector<std::vector<float>>;

std::vector<float> Fetch(device::Model& model, const Weight& weight, Weights::Part part) {
  std::vector<float> tensor(static_cast<size_t>(weight.count()));
  model.weights().Download(weight, part, tensor.data());
  return tensor;
}

Tensors FetchAll(device::Model& model, Weights::Part part) {
  Tensors tensors;
  for (const Weight& weight : model.weights().all()) {
    tensors.push_back(Fetch(model, weight, part));
  }
  return tensors;
}

class Meter {
 public:
  void Add(const std::vector<float>& actual, const std::vector<float>& expected) {
    for (size_t i = 0; i < actual.size(); ++i) {
      const double a = actual[i], e = expected[i];
      signal_ += e * e;
      noise_ += (a - e) * (a - e);
    }
  }
  void Add(const Meter& other) {
    signal_ += other.signal_;
    noise_ += other.noise_;
  }
  double Decibel() const {
    return noise_ == 0 ? std::numeric_limits<double>::infinity()
                       : 10 * std::log10(signal_ / noise_);
  }

 private:
  double signal_ = 0, noise_ = 0;
};

// "decoder.layers.3.mlp.linear_fc1.weight" -> "mlp.linear_fc1.weight".
std::string KindOf(const std::string& name) {
  const size_t layers = name.find("layers.");
  if (layers == std::string::npos) return name;
  return name.substr(name.find('.', layers + 7) + 1);
}

class Bench {
 public:
  Bench(const Options& options, Report& report)
      : options_(options),
        report_(report),
        config_(LlamaConfig(options.model, options.seq, options.layers)) {
    if (options.text.empty()) {
      text_ = std::make_unique<RandomText>(config_.padded_vocab_size);
    } else {
      text_ = std::make_unique<FileText>(options.text, config_.padded_vocab_size);
    }
  }

  void Run() {
    {
      const auto model = Make("bf16");
      Train(*model);
      values_ = FetchAll(*model, Weights::Part::kValue);
      batch_ = text_->Next(options_.micro_batch, options_.seq);
      MakeGradients(*model, 1);
      expected_ = FetchAll(*model, Weights::Part::kGradient);
    }
    for (const std::string& recipe : options_.recipes) {
      const auto model = Make(recipe);
      size_t i = 0;
      for (const Weight& weight : model->weights().all()) {
        model->weights().Upload(weight, Weights::Part::kValue, values_[i++].data());
      }
      model->weights().Convert();
      // The first pass lets delayed scaling see the sizes of the tensors.
      MakeGradients(*model, 2);
      Compare(recipe, *model);
    }
  }

 private:
  std::unique_ptr<device::Model> Make(const std::string& recipe) const {
    config::ModelConfig config = config_;
    UseRecipe(recipe, config);
    device::CudaOptions cuda;
    cuda.gemm_cache = options_.cache;
    return std::make_unique<device::Model>(
        device::MakeCudaOps(cuda), device::Shape{.model = config, .batch = options_.micro_batch},
        device::StateTypes{true, false}, nullptr);
  }

  void Train(device::Model& model) {
    device::Optimizer optimizer(&model, {0.9, 0.95, 1e-8, 0.1});
    double loss = 0;
    for (int64_t step = 0; step < options_.steps; ++step) {
      model.BeginIteration();
      model.ForwardBackward(text_->Next(options_.micro_batch, options_.seq));
      const device::Model::Sums sums = model.TakeSums();
      const double norm = optimizer.Normalize(sums.tokens);
      const double rate = options_.rate * std::min(1.0, static_cast<double>(step + 1) / 20);
      optimizer.Step({rate, rate}, optim::ClipCoefficient(norm, 1.0));
      loss = sums.loss / sums.tokens;
    }
    report_.Add(
        {"loss_before", loss, "nats", false, std::to_string(options_.steps) + " steps in bf16"});
  }

  void MakeGradients(device::Model& model, int passes) {
    for (int pass = 0; pass < passes; ++pass) {
      model.BeginIteration();
      model.ForwardBackward(batch_);
      const device::Model::Sums sums = model.TakeSums();
      loss_ = sums.loss / sums.tokens;
    }
  }

  void Compare(const std::string& recipe, device::Model& model) {
    Meter all;
    std::map<std::string, Meter> kinds;
    double worst = std::numeric_limits<double>::infinity();
    std::string worst_name;
    for (size_t i = 0; i < expected_.size(); ++i) {
      const Weight& weight = model.weights().all()[i];
      const std::string& name = weight.spec.name;
      Meter one;
      one.Add(Fetch(model, weight, Weights::Part::kGradient), expected_[i]);
      all.Add(one);
      kinds[KindOf(name)].Add(one);
      if (one.Decibel() < worst) {
        worst = one.Decibel();
        worst_name = name;
      }
    }
    report_.Add({recipe + ".gradients", all.Decibel(), "dB", true, "all; against bf16"});
    for (const auto& [kind, meter] : kinds) {
      report_.Add({recipe + "." + kind, meter.Decibel(), "dB", true, ""});
    }
    report_.Add({recipe + ".worst", worst, "dB", true, worst_name});
    report_.Add({recipe + ".loss", loss_, "nats", false, ""});
  }

  const Options options_;
  Report& report_;
  const config::ModelConfig config_;
  std::unique_ptr<Text> text_;
  Tensors values_, expected_;
  data::Batch batch_;
  double loss_ = 0;
};

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("gradients in FP8 against those in bf16");
  app.add_option("--model", options.model, "8b, 3b or 1b")
      ->check(CLI::IsMember({"8b", "3b", "1b"}))
      ->capture_default_str();
  app.add_option("--layers", options.layers, "instead of the model's");
  app.add_option("--seq", options.seq)->capture_default_str();
  app.add_option("--micro-batch-size", options.micro_batch)->capture_default_str();
  app.add_option("--steps", options.steps, "of training before the comparison")
      ->capture_default_str();
  app.add_option("--learning-rate", options.rate)->capture_default_str();
  app.add_option("--text", options.text, "a .bin of int32 tokens; default: random ones");
  app.add_option("--recipe", options.recipes, "delayed, tensorwise; several, one by one")
      ->check(CLI::IsMember({"delayed", "tensorwise"}))
      ->capture_default_str();
  app.add_option("--cache", options.cache, "file that keeps tuned algorithms");
  app.add_flag("--json", options.json);
  return RunGpuBench(app, argc, argv, [&] {
    std::fprintf(stderr, "%s W\n", DescribeGpu().c_str());
    Report report(options.json, {});
    Bench(options, report).Run();
    report.Finish();
  });
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  return muster::bench::Main(argc, argv);
}
