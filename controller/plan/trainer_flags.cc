#include "controller/plan/trainer_flags.h"

#include <absl/strings/numbers.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "common/status.h"

namespace muster::plan {
namespace {

struct SizeFlag {
  std::string_view flag;    // Megatron's name
  std::string_view recipe;  // key in [parallel]
  uint32_t (v1::Parallel::*get)() const;
  void (v1::Parallel::*set)(uint32_t);
  uint32_t Sizes::*size;
  bool only_above_one;  // Megatron takes its presence as "on"
};

using P = v1::Parallel;
constexpr std::array kSizeFlags = {
    SizeFlag{"tensor-model-parallel-size", "tp", &P::tp, &P::set_tp, &Sizes::tp, false},
    SizeFlag{"pipeline-model-parallel-size", "pp", &P::pp, &P::set_pp, &Sizes::pp, false},
    SizeFlag{"context-parallel-size", "cp", &P::cp, &P::set_cp, &Sizes::cp, false},
    SizeFlag{"num-virtual-stages-per-pipeline-rank", "vp", &P::vp, &P::set_vp, &Sizes::vp, true},
    SizeFlag{"micro-batch-size", "micro_batch", &P::micro_batch, &P::set_micro_batch,
             &Sizes::micro_batch, false},
    SizeFlag{"global-batch-size", "global_batch", &P::global_batch, &P::set_global_batch,
             &Sizes::global_batch, false},
};

// The value of --flag in the command, if it is there: `--flag V` or `--flag=V`, the last one
// counts.
absl::StatusOr<std::optional<uint32_t>> FromCommand(const v1::JobSpec& spec,
                                                    std::string_view flag) {
  const std::string dashed = fmt::format("--{}", flag);
  std::optional<uint32_t> out;
  for (int i = 1; i < spec.command_size(); ++i) {
    const std::string& word = spec.command(i);
    std::string value;
    if (word == dashed) {
      value = i + 1 < spec.command_size() ? spec.command(i + 1) : "";
    } else if (word.starts_with(dashed + "=")) {
      value = word.substr(dashed.size() + 1);
    } else {
      continue;
    }
    uint32_t number = 0;
    if (!absl::SimpleAtoi(value, &number) || number == 0) {
      return absl::InvalidArgumentError(
          fmt::format("{} in the command needs a whole number from 1, not '{}'", dashed, value));
    }
    out = number;
  }
  return out;
}

}  // namespace

bool IsTrainer(const v1::JobSpec& spec) {
  if (spec.command_size() == 0) return false;
  const std::string_view program = spec.command(0);
  return program.substr(program.rfind('/') + 1) == "muster-train";
}

absl::StatusOr<v1::Parallel> TrainerParallel(const v1::JobSpec& spec) {
  v1::Parallel parallel = spec.parallel();
  for (const SizeFlag& size : kSizeFlags) {
    for (const v1::Flag& flag : spec.flags()) {
      if (flag.name() == size.flag) {
        return absl::InvalidArgumentError(
            fmt::format("[flags] {}: write {} in [parallel], where the other sizes follow from it",
                        size.flag, size.recipe));
      }
    }
    MUSTER_ASSIGN_OR_RETURN(const std::optional<uint32_t> given, FromCommand(spec, size.flag));
    if (!given) continue;
    const uint32_t wanted = (parallel.*size.get)();
    if (wanted > 0 && wanted != *given) {
      return absl::InvalidArgumentError(
          fmt::format("--{} {} in the command, but {} is {}: give it once", size.flag, *given,
                      size.recipe, wanted));
    }
    (parallel.*size.set)(*given);
  }
  if (!HasBatch(parallel)) {
    return absl::InvalidArgumentError(
        "muster-train needs micro_batch and exactly one of global_batch and num_microbatches");
  }
  return parallel;
}

std::vector<std::string> TrainerArgv(const v1::JobSpec& spec, const Sizes& sizes) {
  std::vector<std::string> argv(spec.command().begin(), spec.command().end());
  for (const SizeFlag& size : kSizeFlags) {
    if (size.only_above_one && sizes.*size.size <= 1) continue;
    // TrainerParallel has read the same flags, so the value can't be in doubt here.
    if (FromCommand(spec, size.flag).value_or(std::nullopt)) continue;
    argv.push_back(fmt::format("--{}", size.flag));
    argv.push_back(std::to_string(sizes.*size.size));
  }
  for (const v1::Flag& flag : spec.flags()) {
    argv.push_back("--" + flag.name());
    argv.insert(argv.end(), flag.values().begin(), flag.values().end());
  }
  return argv;
}

}  // namespace muster::plan
