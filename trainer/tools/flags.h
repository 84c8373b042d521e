#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace muster::tools {

// A mistake on the command line; the message ends with what to do. Programs exit with 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline constexpr int kUsageExitCode = 2;

// Command-line flags in the style of Python's argparse: --name VALUE, --name=VALUE, --name V1 V2
// ..., --switch. The targets must outlive Parse.
class Flags {
 public:
  void Switch(const std::string& name, bool* target, const std::string& help);
  void Text(const std::string& name, std::string* target, const std::string& help);
  // From `minimum` to `maximum`.
  void Integer(const std::string& name, int64_t* target, int64_t minimum, int64_t maximum,
               const std::string& help);
  void Integer(const std::string& name, int64_t* target, int64_t minimum, const std::string& help) {
    Integer(name, target, minimum, INT64_MAX, help);
  }
  void List(const std::string& name, std::vector<std::string>* target, const std::string& help);
  // Flags of Megatron's that change nothing here: taken, with a value or without one.
  void NoEffect(const std::string& name, bool takes_value, const std::string& help);
  // A flag of Megatron's that is refused, for `reason`, which ends with what to do. Not in help.
  void Refused(const std::string& name, const std::string& reason);
  // Words that belong to no flag, at least `minimum` and at most `maximum`; `name` as in help.
  void Words(const std::string& name, size_t minimum, size_t maximum,
             std::vector<std::string>* target, const std::string& help);

  // Throws UsageError: an unknown flag (with the nearest one), a missing or wrong value, a stray
  // word.
  void Parse(const std::vector<std::string>& words) const;

  // The same, and gives the flags that were given, with their values.
  std::map<std::string, std::vector<std::string>> ParseNoting(
      const std::vector<std::string>& words) const;

  // One line a flag.
  std::string Help() const;

 private:
  struct Flag {
    std::string name;
    std::string value_name;  // empty: takes none
    std::string help;
    bool many = false;
    std::function<void(const std::vector<std::string>& values)> set;
    bool refused = false;  // set throws, with a value or without
  };

  const Flag& Find(const std::string& name) const;
  void CheckWords(size_t count) const;

  std::vector<Flag> flags_;
  std::string words_name_;
  std::string words_help_;
  size_t min_words_ = 0;
  size_t max_words_ = 0;
  std::vector<std::string>* words_ = nullptr;
};

}  // namespace muster::tools
