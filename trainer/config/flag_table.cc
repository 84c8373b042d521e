#include "trainer/config/flag_table.h"

#include <fmt/format.h>

#include <iterator>
#include <unordered_map>

namespace muster::config {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

std::string Join(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace

std::string_view GroupTitle(Group group) {
  switch (group) {
    case Group::kModel:
      return "Model";
    case Group::kTraining:
      return "Training";
    case Group::kOptimizer:
      return "Optimizer and learning rate";
    case Group::kPrecision:
      return "Precision";
    case Group::kParallel:
      return "Parallelism";
    case Group::kData:
      return "Data and tokenizer";
    case Group::kEvaluation:
      return "Evaluation";
    case Group::kCheckpoint:
      return "Checkpoints";
    case Group::kLogging:
      return "Output";
    case Group::kNoEffect:
      return "Accepted, without effect here";
  }
  return "";
}

const std::vector<Flag>& FlagTable() {
  static const std::vector<Flag> table = [] {
    std::vector<Flag> all;
    for (auto part :
         {ModelFlags(), TrainingFlags(), ParallelFlags(), RunFlags(), NoEffectFlags()}) {
      std::move(part.begin(), part.end(), std::back_inserter(all));
    }
    return all;
  }();
  return table;
}

const Flag* FindFlag(std::string_view name) {
  static const std::unordered_map<std::string_view, const Flag*> index = [] {
    std::unordered_map<std::string_view, const Flag*> map;
    for (const Flag& flag : FlagTable()) {
      map[flag.name] = &flag;
      for (std::string_view alias : flag.aliases) map[alias] = &flag;
    }
    return map;
  }();
  const auto it = index.find(name);
  return it == index.end() ? nullptr : it->second;
}

Words WordsOf(const Flag& flag) {
  if (std::holds_alternative<BoolRef>(flag.target)) return Words::kNone;
  if (std::holds_alternative<ListRef>(flag.target)) return Words::kMany;
  if (const Words* words = std::get_if<Words>(&flag.target)) return *words;
  return Words::kOne;
}

std::string ValueText(const Flag& flag, const TrainConfig& config) {
  auto& c = const_cast<TrainConfig&>(config);  // the references below are only read
  return std::visit(
      Overloaded{
          [&](BoolRef ref) { return std::string(ref(c) ? "true" : "false"); },
          [&](IntRef ref) { return fmt::format("{}", ref(c)); },
          [&](DoubleRef ref) { return fmt::format("{}", ref(c)); },
          [&](OptionalIntRef ref) { return ref(c) ? fmt::format("{}", *ref(c)) : std::string(); },
          [&](OptionalDoubleRef ref) {
            return ref(c) ? fmt::format("{}", *ref(c)) : std::string();
          },
          [&](StringRef ref) { return ref(c); },
          [&](ListRef ref) { return Join(ref(c)); },
          [&](Words) { return std::string(); },
      },
      flag.target);
}

}  // namespace muster::config
