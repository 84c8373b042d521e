#include "trainer/tools/flags.h"

#include <fmt/format.h>

#include <charconv>

#include "common/suggest.h"

namespace muster::tools {
namespace {

constexpr int kHelpColumn = 46;

}  // namespace

void Flags::Switch(const std::string& name, bool* target, const std::string& help) {
  flags_.push_back({name, "", help, false, [target](const auto&) { *target = true; }});
}

void Flags::Text(const std::string& name, std::string* target, const std::string& help) {
  flags_.push_back(
      {name, "TEXT", help, false, [target](const auto& values) { *target = values[0]; }});
}

void Flags::Integer(const std::string& name, int64_t* target, int64_t minimum, int64_t maximum,
                    const std::string& help) {
  flags_.push_back({name, "N", help, false, [=](const auto& values) {
                      const std::string& word = values[0];
                      const char* end = word.data() + word.size();
                      const auto parsed = std::from_chars(word.data(), end, *target);
                      const bool whole = parsed.ec == std::errc() && parsed.ptr == end;
                      if (whole && *target >= minimum && *target <= maximum) return;
                      const std::string most =
                          maximum == INT64_MAX ? "" : fmt::format(" and at most {}", maximum);
                      throw UsageError(fmt::format("{} {}: expected a whole number, at least {}{}",
                                                   name, word, minimum, most));
                    }});
}

void Flags::List(const std::string& name, std::vector<std::string>* target,
                 const std::string& help) {
  flags_.push_back(
      {name, "TEXT...", help, true, [target](const auto& values) { *target = values; }});
}

void Flags::NoEffect(const std::string& name, bool takes_value, const std::string& help) {
  flags_.push_back({name, takes_value ? "TEXT" : "", help, false, [](const auto&) {}});
}

void Flags::Refused(const std::string& name, const std::string& reason) {
  const auto refuse = [=](const auto&) { throw UsageError(name + " " + reason); };
  flags_.push_back({name, "TEXT...", "", true, refuse, true});
}

void Flags::Words(const std::string& name, size_t minimum, size_t maximum,
                  std::vector<std::string>* target, const std::string& help) {
  words_name_ = name;
  words_help_ = help;
  min_words_ = minimum;
  max_words_ = maximum;
  words_ = target;
}

const Flags::Flag& Flags::Find(const std::string& name) const {
  std::vector<std::string> names;
  for (const Flag& flag : flags_) {
    if (flag.name == name) return flag;
    names.push_back(flag.name);
  }
  const std::string hint = DidYouMean(name, names);
  throw UsageError("unknown flag " + name + (hint.empty() ? "; see --help" : hint));
}

void Flags::CheckWords(size_t count) const {
  if (count < min_words_) {
    throw UsageError(words_name_ + " is missing: " + words_help_ + "; see --help");
  }
}

void Flags::Parse(const std::vector<std::string>& words) const {
  ParseNoting(words);
}

std::map<std::string, std::vector<std::string>> Flags::ParseNoting(
    const std::vector<std::string>& words) const {
  std::map<std::string, std::vector<std::string>> given;
  size_t stray = 0;
  for (size_t i = 0; i < words.size();) {
    if (!words[i].starts_with("--")) {
      if (++stray > max_words_) throw UsageError("'" + words[i] + "' is not a flag; see --help");
      words_->push_back(words[i++]);
      continue;
    }
    const size_t equals = words[i].find('=');
    const Flag& flag = Find(words[i].substr(0, equals));
    std::vector<std::string> values;
    if (equals != std::string::npos) values.push_back(words[i].substr(equals + 1));
    ++i;
    if (!flag.value_name.empty() && values.empty()) {
      do {
        if (i == words.size() || words[i].starts_with("--")) break;
        values.push_back(words[i++]);
      } while (flag.many);
    }
    if (flag.refused) flag.set(values);
    if (flag.value_name.empty() != values.empty()) {
      throw UsageError(flag.name + (values.empty() ? " needs a value" : " takes no value"));
    }
    flag.set(values);
    given[flag.name] = values;
  }
  CheckWords(stray);
  return given;
}

std::string Flags::Help() const {
  std::string help;
  if (words_ != nullptr) {
    help += fmt::format("  {:<{}}{}\n", words_name_, kHelpColumn, words_help_);
  }
  for (const Flag& flag : flags_) {
    if (flag.refused) continue;
    help += fmt::format("  {:<{}}{}\n", flag.name + " " + flag.value_name, kHelpColumn, flag.help);
  }
  return help;
}

}  // namespace muster::tools
