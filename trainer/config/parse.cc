#include "trainer/config/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

#include "common/suggest.h"
#include "trainer/config/error.h"
#include "trainer/config/flag_table.h"

namespace muster::config {
namespace {

[[noreturn]] void Fail(const Flag& flag, std::string_view value, std::string_view wants) {
  throw ConfigError(fmt::format("--{} {}: {}", flag.name, value, wants));
}

template <class Number>
Number ParseNumber(const Flag& flag, const std::string& text, std::string_view wants) {
  Number value{};
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || rest != end || begin == end) Fail(flag, "'" + text + "'", wants);
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(value)) Fail(flag, text, "wants a finite number");
  }
  if (static_cast<double>(value) < flag.minimum) {
    Fail(flag, text, fmt::format("must be at least {}", flag.minimum));
  }
  return value;
}

int64_t ParseInt(const Flag& flag, const std::string& text) {
  return ParseNumber<int64_t>(flag, text, "wants a whole number");
}

double ParseDouble(const Flag& flag, const std::string& text) {
  return ParseNumber<double>(flag, text, "wants a number");
}

std::string ParseText(const Flag& flag, const std::string& text) {
  if (flag.choices.empty()) return text;
  if (std::ranges::find(flag.choices, text) != flag.choices.end()) return text;
  const std::vector<std::string> choices(flag.choices.begin(), flag.choices.end());
  Fail(flag, "'" + text + "'",
       fmt::format("must be one of {}{}", fmt::join(choices, ", "), DidYouMean(text, choices)));
}

// Stores `values`, whose number fits the flag.
struct Store {
  const Flag& flag;
  std::span<const std::string> values;
  TrainConfig& config;

  void operator()(BoolRef ref) const { ref(config) = true; }
  void operator()(IntRef ref) const { ref(config) = ParseInt(flag, values[0]); }
  void operator()(OptionalIntRef ref) const { ref(config) = ParseInt(flag, values[0]); }
  void operator()(DoubleRef ref) const { ref(config) = ParseDouble(flag, values[0]); }
  void operator()(OptionalDoubleRef ref) const { ref(config) = ParseDouble(flag, values[0]); }
  void operator()(StringRef ref) const { ref(config) = ParseText(flag, values[0]); }
  void operator()(ListRef ref) const { ref(config).assign(values.begin(), values.end()); }
  void operator()(Words) const {}
};

std::vector<std::string> AllNames() {
  std::vector<std::string> names = {"--help", "--version", "--print-config"};
  for (const Flag& flag : FlagTable()) names.push_back("--" + std::string(flag.name));
  return names;
}

const Flag& RequireFlag(const std::string& word) {
  if (!word.starts_with("--") || word == "--") {
    throw ConfigError(
        fmt::format("'{}': expected a flag; words may follow only a flag that takes them", word));
  }
  const Flag* flag = FindFlag(std::string_view(word).substr(2));
  if (flag == nullptr) {
    throw ConfigError("unknown flag " + word + DidYouMean(word, AllNames()));
  }
  return *flag;
}

// The words after a flag up to the next one. `-5` is a value, `--x` never.
std::span<const std::string> ValuesFrom(std::span<const std::string> words, size_t limit) {
  size_t n = 0;
  while (n < words.size() && n < limit && !words[n].starts_with("--")) ++n;
  return words.first(n);
}

bool SetAction(const std::string& word, CommandLine& line) {
  if (word == "--help" || word == "-h") {
    line.action = Action::kHelp;
  } else if (word == "--version") {
    line.action = Action::kVersion;
  } else if (word == "--print-config") {
    line.action = Action::kPrintConfig;
  } else {
    return false;
  }
  return true;
}

}  // namespace

CommandLine Parse(const std::vector<std::string>& words) {
  CommandLine line;
  for (size_t i = 0; i < words.size();) {
    if (SetAction(words[i], line)) {
      if (line.action != Action::kPrintConfig) return line;
      ++i;
      continue;
    }
    const size_t equals = words[i].find('=');
    const bool inline_value = words[i].starts_with("--") && equals != std::string::npos;
    const Flag& flag = RequireFlag(inline_value ? words[i].substr(0, equals) : words[i]);
    const std::vector<std::string> inline_words = {inline_value ? words[i].substr(equals + 1) : ""};
    ++i;

    const Words wanted = WordsOf(flag);
    std::span<const std::string> values;
    if (inline_value) {
      if (wanted == Words::kNone) Fail(flag, inline_words[0], "takes no value");
      values = inline_words;
    } else if (wanted != Words::kNone) {
      values = ValuesFrom(std::span(words).subspan(i), wanted == Words::kOne ? 1 : words.size());
      if (values.empty()) Fail(flag, "", "wants a value");
      i += values.size();
    }

    std::visit(Store{flag, values, line.config}, flag.target);
    line.origins[std::string(flag.name)] = "command line";
    if (flag.group == Group::kNoEffect) {
      line.without_effect[std::string(flag.name)] = fmt::format("{}", fmt::join(values, " "));
    }
  }
  return line;
}

}  // namespace muster::config
