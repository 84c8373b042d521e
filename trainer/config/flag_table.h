#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trainer/config/train_config.h"

// The one table of muster-train's flags: name, where the value goes, what it may be, one line of
// help. Parser, help text, printed config and validation messages all read it. Megatron-LM's names
// and defaults; a flag that changes nothing here is in the table too, with the reason, so that
// existing command lines run as they are.

namespace muster::config {

enum class Group {
  kModel,
  kTraining,
  kOptimizer,
  kPrecision,
  kParallel,
  kData,
  kEvaluation,
  kCheckpoint,
  kLogging,
  kNoEffect,
};
std::string_view GroupTitle(Group group);

using BoolRef = bool& (*)(TrainConfig&);
using IntRef = int64_t& (*)(TrainConfig&);
using OptionalIntRef = std::optional<int64_t>& (*)(TrainConfig&);
using DoubleRef = double& (*)(TrainConfig&);
using OptionalDoubleRef = std::optional<double>& (*)(TrainConfig&);
using StringRef = std::string& (*)(TrainConfig&);
using ListRef = std::vector<std::string>& (*)(TrainConfig&);
// A flag whose value is not used: how many words follow it.
enum class Words { kNone, kOne, kMany };

using Target = std::variant<BoolRef, IntRef, OptionalIntRef, DoubleRef, OptionalDoubleRef,
                            StringRef, ListRef, Words>;

struct Flag {
  std::string_view name;  // without dashes
  Group group;
  Target target;
  std::string_view help;  // for kNoEffect: why it changes nothing
  double minimum = -std::numeric_limits<double>::infinity();
  std::vector<std::string_view> choices = {};  // empty: any text
  std::vector<std::string_view> aliases = {};
};

// All flags in the order of the help text. Built on first use; immutable, any thread.
const std::vector<Flag>& FlagTable();
// By name or alias; null when there is none.
const Flag* FindFlag(std::string_view name);
// How many words follow the flag.
Words WordsOf(const Flag& flag);
// The value as a command line would give it; empty for one that is not set.
std::string ValueText(const Flag& flag, const TrainConfig& config);

// The parts of the table.
std::vector<Flag> ModelFlags();
std::vector<Flag> TrainingFlags();
std::vector<Flag> ParallelFlags();
std::vector<Flag> RunFlags();
std::vector<Flag> NoEffectFlags();

}  // namespace muster::config
