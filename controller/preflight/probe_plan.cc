#include "controller/preflight/probe_plan.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace muster::preflight {
namespace {

// Flags of muster-train whose values are data prefixes (PREFIX.bin and PREFIX.idx), each after an
// optional blend weight.
constexpr std::array kPrefixFlags = {"--data-path", "--train-data-path", "--valid-data-path",
                                     "--test-data-path"};
// Flags whose value is a file.
constexpr std::array kFileFlags = {"--tokenizer-model", "--vocab-file", "--merge-file"};

template <typename Names>
bool Contains(const Names& names, std::string_view word) {
  return std::find(names.begin(), names.end(), word) != names.end();
}

bool IsTrainer(std::string_view program) {
  const auto slash = program.rfind('/');
  return (slash == std::string_view::npos ? program : program.substr(slash + 1)) == "muster-train";
}

bool HasTemplate(std::string_view word) {
  return word.find('{') != std::string_view::npos;
}

std::string Absolute(const std::string& working_dir, const std::string& path) {
  return path.starts_with('/') ? path : absl::StrCat(working_dir, "/", path);
}

// Splits --flag=value into two words, so that both spellings read alike.
std::vector<std::string> Words(const v1::Plan& plan) {
  std::vector<std::string> words;
  for (const std::string& word : plan.argv()) {
    const auto equal = word.find('=');
    if (word.starts_with("--") && equal != std::string::npos) {
      words.push_back(word.substr(0, equal));
      words.push_back(word.substr(equal + 1));
    } else {
      words.push_back(word);
    }
  }
  return words;
}

std::vector<std::string> TrainerFiles(const v1::JobSpec& spec, const v1::Plan& plan) {
  std::vector<std::string> files;
  std::string flag;
  for (const std::string& word : Words(plan)) {
    if (word.starts_with("--")) {
      flag = word;
      continue;
    }
    double weight = 0;
    if (word.empty() || HasTemplate(word) || absl::SimpleAtod(word, &weight)) continue;
    const std::string path = Absolute(spec.working_dir(), word);
    if (Contains(kPrefixFlags, flag)) {
      files.push_back(path + ".bin");
      files.push_back(path + ".idx");
    } else if (Contains(kFileFlags, flag)) {
      files.push_back(path);
    }
  }
  return files;
}

}  // namespace

v1::Probe MakeProbe(const v1::JobSpec& spec, const v1::Plan& plan, uint32_t node) {
  v1::Probe probe;
  probe.set_working_dir(spec.working_dir());
  if (plan.argv_size() > 0) {
    if (!HasTemplate(plan.argv(0))) probe.set_program(plan.argv(0));
    if (IsTrainer(plan.argv(0))) {
      for (auto& path : TrainerFiles(spec, plan)) probe.add_readable(std::move(path));
    }
  }
  if (node == 0) {
    probe.set_want_port(true);
    probe.set_port_address(plan.nodes(0).data_addr());
  }
  return probe;
}

}  // namespace muster::preflight
