#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "common/status.h"
#include "controller/plan/model_shape.h"
#include "controller/plan/trainer_flags.h"

namespace muster::plan {
namespace {

// Flags that the planner reads as whole numbers, and the least that means something.
struct CountFlag {
  std::string_view name;
  uint32_t least;
};
constexpr std::array kCounts = {
    CountFlag{"num-layers", 1},
    CountFlag{"hidden-size", 1},
    CountFlag{"ffn-hidden-size", 1},
    CountFlag{"num-attention-heads", 1},
    CountFlag{"num-query-groups", 1},
    CountFlag{"kv-channels", 1},
    CountFlag{"seq-length", 1},
    CountFlag{"vocab-size", 1},
    CountFlag{"make-vocab-size-divisible-by", 1},
    CountFlag{"recompute-num-layers", 1},
    CountFlag{"decoder-first-pipeline-num-layers", 0},
    CountFlag{"decoder-last-pipeline-num-layers", 0},
};

struct ChoiceFlag {
  std::string_view name;
  std::array<std::string_view, 2> choices;
};
constexpr std::array kChoices = {
    ChoiceFlag{"fp8-format", {"hybrid", "e4m3"}},
    ChoiceFlag{"recompute-granularity", {"full", "selective"}},
    ChoiceFlag{"recompute-method", {"uniform", "block"}},
};

// [parallel] keys, which are easily taken for flags.
constexpr std::array<std::string_view, 7> kSizes = {
    "tp", "pp", "cp", "vp", "micro_batch", "global_batch", "num_microbatches"};

// A template is filled for each rank, later.
bool IsTemplate(std::string_view text) {
  return text.find('{') != std::string_view::npos;
}

absl::Status Wrong(std::string_view flag, const std::string& value, std::string_view wanted) {
  return absl::InvalidArgumentError(fmt::format("--{} '{}': it takes {}", flag, value, wanted));
}

absl::Status CheckCounts(const FlagReader& flags) {
  for (const CountFlag& flag : kCounts) {
    const std::string value = flags.Text(flag.name);
    if (!flags.Has(flag.name) || IsTemplate(value)) continue;
    const auto count = flags.Count(flag.name);
    if (count && *count >= flag.least) continue;
    return Wrong(flag.name, value, fmt::format("a whole number from {}", flag.least));
  }
  return absl::OkStatus();
}

absl::Status CheckChoices(const FlagReader& flags) {
  for (const ChoiceFlag& flag : kChoices) {
    const std::string value = flags.Text(flag.name);
    if (!flags.Has(flag.name) || IsTemplate(value)) continue;
    if (std::find(flag.choices.begin(), flag.choices.end(), value) != flag.choices.end()) continue;
    return Wrong(flag.name, value, fmt::format("{} or {}", flag.choices[0], flag.choices[1]));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckModelFlags(const v1::JobSpec& spec) {
  for (const v1::Flag& flag : spec.flags()) {
    std::string key = flag.name();
    std::replace(key.begin(), key.end(), '-', '_');
    if (std::find(kSizes.begin(), kSizes.end(), key) == kSizes.end()) continue;
    std::string option = key;
    std::replace(option.begin(), option.end(), '_', '-');
    return absl::InvalidArgumentError(
        fmt::format("[flags] {}: muster-train has no such flag: write {} in [parallel], or --{} N "
                    "on the command line",
                    flag.name(), key, option));
  }
  const FlagReader flags(spec);
  MUSTER_RETURN_IF_ERROR(CheckCounts(flags));
  MUSTER_RETURN_IF_ERROR(CheckChoices(flags));
  constexpr std::string_view kBase = "rotary-base";
  const std::string base = flags.Text(kBase);
  if (flags.Has(kBase) && !IsTemplate(base) && flags.Number(kBase).value_or(0) < 1) {
    return Wrong(kBase, base, "a number from 1");
  }
  return absl::OkStatus();
}

}  // namespace muster::plan
