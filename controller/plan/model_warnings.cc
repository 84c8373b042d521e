#include "controller/plan/model_warnings.h"

#include <absl/strings/numbers.h>
#include <fmt/format.h>

#include <algorithm>

#include "controller/plan/performance.h"
#include "controller/plan/trainer_flags.h"

namespace muster::plan {
namespace {

constexpr uint32_t kLlama3Vocab = 128256;
constexpr double kLlama3RotaryBase = 500000;

void WarnRotaryBase(const FlagReader& flags, std::vector<std::string>& out) {
  const double base = flags.Number("rotary-base").value_or(10000);
  if (flags.Count("vocab-size") != kLlama3Vocab || base == kLlama3RotaryBase) return;
  const bool weights = flags.Has("load-hf") || flags.Has("pretrained-checkpoint");
  out.push_back(
      fmt::format("rotary-base {:.0f} with Llama-3's vocabulary: Llama-3 weights need "
                  "500000{}",
                  base,
                  weights ? "; with the weights that this job loads it is wrong"
                          : "; only for training from nothing is another base all right"));
}

void WarnSequenceParallel(const FlagReader& flags, const Sizes& sizes,
                          std::vector<std::string>& out) {
  if (!flags.Has("sequence-parallel") || sizes.tp > 1) return;
  out.emplace_back("sequence-parallel does nothing with TP 1");
}

// Layout flags in the command of a program whose argv the planner does not write.
void WarnOtherSizes(const FlagReader& flags, const Sizes& sizes, std::vector<std::string>& out) {
  struct Size {
    std::string_view flag;
    std::string_view ours;
    uint32_t value;
  };
  for (const Size& size : {Size{"tensor-model-parallel-size", "--tp", sizes.tp},
                           Size{"pipeline-model-parallel-size", "--pp", sizes.pp},
                           Size{"context-parallel-size", "--cp", sizes.cp}}) {
    const auto given = flags.Count(size.flag);
    if (!given || *given == size.value) continue;
    out.push_back(
        fmt::format("the command has --{0} {1}, this plan has {2}: give {3} {1}, or write the "
                    "template {{{4}}} there",
                    size.flag, *given, size.value, size.ours, size.ours.substr(2)));
  }
}

void WarnConnections(const v1::JobSpec& spec, const Sizes& sizes, std::vector<std::string>& out) {
  constexpr std::string_view kName = "CUDA_DEVICE_MAX_CONNECTIONS";
  const bool given = std::any_of(spec.env().begin(), spec.env().end(),
                                 [&](const v1::EnvVar& v) { return v.name() == kName; });
  if (given || (sizes.tp == 1 && sizes.cp == 1)) return;
  out.push_back(
      fmt::format("{}=1 is not set: Megatron refuses TP or CP above 1 without it (give --env {}=1)",
                  kName, kName));
}

void WarnBubble(const Sizes& sizes, std::vector<std::string>& out) {
  constexpr double kMuch = 0.2;
  if (sizes.num_microbatches == 0 || BubbleFraction(sizes) < kMuch) return;
  out.push_back(
      fmt::format("pipeline bubble of {:.0f} %: {} micro-batches are few for PP {}; more "
                  "micro-batches, virtual "
                  "stages or a smaller PP shorten it",
                  100 * BubbleFraction(sizes), sizes.num_microbatches, sizes.pp));
}

// The training part of --split "99,1,0"; Megatron's default is 969,30,1.
double TrainShare(const FlagReader& flags) {
  std::string text = flags.Text("split");
  if (text.empty()) text = "969,30,1";
  std::vector<double> parts;
  std::string number;
  for (const char c : text + ",") {
    if ((c >= '0' && c <= '9') || c == '.') {
      number += c;
    } else if (double value = 0; !number.empty() && absl::SimpleAtod(number, &value)) {
      parts.push_back(value);
      number.clear();
    }
  }
  double sum = 0;
  for (const double part : parts) sum += part;
  return sum > 0 ? parts[0] / sum : 1;
}

}  // namespace

std::vector<std::string> ModelWarnings(const v1::JobSpec& spec, const Sizes& sizes,
                                       const ModelShape* model) {
  const FlagReader flags(spec);
  std::vector<std::string> out;
  WarnRotaryBase(flags, out);
  WarnSequenceParallel(flags, sizes, out);
  WarnBubble(sizes, out);
  if (IsTrainer(spec)) return out;
  WarnOtherSizes(flags, sizes, out);
  if (model == nullptr) return out;
  WarnConnections(spec, sizes, out);
  if (auto why = CheckModel(*model, sizes)) {
    out.push_back(fmt::format("{}: programs of Megatron's kind refuse that", *why));
  }
  return out;
}

std::vector<std::string> DataPrefixes(const v1::JobSpec& spec) {
  std::vector<std::string> out;
  const FlagReader flags(spec);
  for (const std::string_view flag : {"data-path", "train-data-path"}) {
    for (const std::string& word : flags.Find(flag).value_or(std::vector<std::string>())) {
      double weight = 0;
      if (!absl::SimpleAtod(word, &weight)) out.push_back(word);
    }
  }
  return out;
}

std::vector<std::string> DataWarnings(const v1::JobSpec& spec, const v1::Plan& plan,
                                      const std::vector<DataFile>& files) {
  constexpr double kManyEpochs = 2;
  const FlagReader flags(spec);
  const double seq = flags.Count("seq-length").value_or(0);
  std::vector<std::string> out;
  if (files.empty() || seq == 0) return out;
  double tokens = 0;
  for (const DataFile& file : files) {
    tokens += static_cast<double>(file.tokens);
    if (static_cast<double>(file.tokens) > seq) continue;
    out.push_back(fmt::format("data too short: {} has {} tokens, one sample takes {:.0f} + 1",
                              file.prefix, file.tokens, seq));
  }
  if (!out.empty() || files.size() < DataPrefixes(spec).size()) return out;
  const double samples =
      flags.Number("train-samples")
          .value_or(flags.Number("train-iters").value_or(0) * plan.global_batch());
  const double share = flags.Has("train-data-path") ? 1 : TrainShare(flags);
  const double epochs = samples * seq / std::max(1.0, tokens * share);
  if (epochs >= kManyEpochs) {
    out.push_back(fmt::format(
        "data too short: {:.3g} tokens are there for training, the run takes {:.3g}: each is seen "
        "about {:.3g} times",
        tokens * share, samples * seq, epochs));
  }
  return out;
}

}  // namespace muster::plan
