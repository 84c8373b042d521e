#include "trainer/config/print.h"

#include <fmt/format.h>

#include "trainer/config/flag_table.h"

namespace muster::config {
namespace {

constexpr Group kGroups[] = {
    Group::kModel, Group::kTraining,   Group::kOptimizer,  Group::kPrecision, Group::kParallel,
    Group::kData,  Group::kEvaluation, Group::kCheckpoint, Group::kLogging,   Group::kNoEffect,
};

std::string Usage(const Flag& flag) {
  std::string text = "--" + std::string(flag.name);
  switch (WordsOf(flag)) {
    case Words::kNone:
      break;
    case Words::kOne:
      text += flag.choices.empty() ? " V" : fmt::format(" {}", fmt::join(flag.choices, "|"));
      break;
    case Words::kMany:
      text += " V..";
      break;
  }
  return text;
}

std::string DefaultNote(const Flag& flag) {
  const TrainConfig defaults;
  const std::string value = ValueText(flag, defaults);
  if (value.empty() || value == "false" || value == "0") return "";
  return fmt::format(" [{}]", value);
}

std::string_view Origin(const CommandLine& line, const Flag& flag) {
  const auto it = line.origins.find(flag.name);
  return it == line.origins.end() ? std::string_view("default") : std::string_view(it->second);
}

std::string ConfigLine(const CommandLine& line, const Flag& flag) {
  const std::string value = ValueText(flag, line.config);
  return fmt::format("  {:<40} {:<24} {}\n", flag.name, value.empty() ? "-" : value,
                     Origin(line, flag));
}

std::string WithoutEffectText(const CommandLine& line) {
  std::string out;
  for (const auto& [name, words] : line.without_effect) {
    out += fmt::format("  --{}{}{}: no effect: {}\n", name, words.empty() ? "" : " ", words,
                       FindFlag(name)->help);
  }
  return out;
}

// What Megatron would do without a flag that here changes nothing or has one value only.
struct OtherDefault {
  std::string_view flag;
  std::string_view megatron;
  std::string_view also = {};  // another flag that says the same
};
constexpr OtherDefault kOtherDefaults[] = {
    {"swiglu", "GELU"},
    {"disable-bias-linear", "biases"},
    {"normalization", "LayerNorm"},
    {"position-embedding-type", "learned positions", "use-rotary-position-embeddings"},
    {"attention-dropout", "0.1"},
    {"hidden-dropout", "0.1"},
};

// One line when the same words would give another model in Megatron. A config.json says by itself
// that the model is a Llama.
std::string OtherDefaultsText(const CommandLine& line) {
  if (line.Given("load-hf")) return "";
  std::vector<std::string> missing;
  for (const auto& [flag, megatron, also] : kOtherDefaults) {
    if (line.Given(flag) || line.Given(also)) continue;
    missing.push_back(fmt::format("--{} ({})", flag, megatron));
  }
  if (missing.empty()) return "";
  return fmt::format("  note: always a Llama here; Megatron would train another model without {}\n",
                     fmt::join(missing, ", "));
}

}  // namespace

std::string HelpText() {
  std::string out =
      "usage: muster-train FLAGS\n\n"
      "One rank of a Llama pretraining job. Flags, data files and log lines are Megatron-LM's. "
      "Rank and world come from\n"
      "RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT; without them the program trains "
      "alone.\n\n"
      "  --help                 this text\n"
      "  --version              the version\n"
      "  --print-config         every value and where it comes from, without training\n";
  for (const Group group : kGroups) {
    out += fmt::format("\n{}:\n", GroupTitle(group));
    for (const Flag& flag : FlagTable()) {
      if (flag.group != group) continue;
      const std::string usage = Usage(flag);
      const std::string gap =
          usage.size() > 44 ? "\n" + std::string(48, ' ') : std::string(46 - usage.size(), ' ');
      out += fmt::format("  {}{}{}{}\n", usage, gap, flag.help, DefaultNote(flag));
    }
  }
  return out;
}

std::string ConfigText(const CommandLine& line) {
  std::string out;
  for (const Group group : kGroups) {
    if (group == Group::kNoEffect) continue;
    out += fmt::format("{}:\n", GroupTitle(group));
    for (const Flag& flag : FlagTable()) {
      if (flag.group == group) out += ConfigLine(line, flag);
    }
  }
  return out + WithoutEffectText(line) + OtherDefaultsText(line);
}

std::string ChangedText(const CommandLine& line) {
  std::string out;
  for (const Flag& flag : FlagTable()) {
    if (flag.group != Group::kNoEffect && line.origins.contains(flag.name)) {
      out += ConfigLine(line, flag);
    }
  }
  return out + WithoutEffectText(line) + OtherDefaultsText(line);
}

}  // namespace muster::config
