#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "common/utf8.h"
#include "controller/preflight/probe_plan.h"

namespace muster::preflight {
namespace {

constexpr size_t kMostOptional = 64;

// Flags whose values are data prefixes (PREFIX.bin and PREFIX.idx), each after an optional blend
// weight: muster-train's and Megatron's.
constexpr std::array<std::string_view, 4> kPrefixFlags = {"--data-path", "--train-data-path",
                                                          "--valid-data-path", "--test-data-path"};
// Flags of muster-train whose value is a file.
constexpr std::array<std::string_view, 3> kFileFlags = {"--tokenizer-model", "--vocab-file",
                                                        "--merge-file"};
constexpr std::array<std::string_view, 2> kSaveFlags = {"--save", "--save-hf"};
// A flag with one of these in its name says where something is written.
constexpr std::array<std::string_view, 12> kOutputWords = {"log",     "out",    "save",   "dump",
                                                           "trace",   "profil", "ckpt",   "board",
                                                           "checkpo", "cache",  "result", "record"};
// Programs whose first word is a script.
constexpr std::array<std::string_view, 6> kInterpreters = {"python", "bash", "sh",
                                                           "perl",   "ruby", "julia"};

template <typename Names>
bool Contains(const Names& names, std::string_view word) {
  return std::find(names.begin(), names.end(), word) != names.end();
}

std::string BaseName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// "python3.11" is a python.
bool IsInterpreter(const std::string& program) {
  std::string name = BaseName(program);
  name = name.substr(0, name.find_last_not_of("0123456789.") + 1);
  return Contains(kInterpreters, name);
}

// `-c TEXT` and `-m MODULE`, also behind other letters: `bash -lc`.
bool RunsNoScript(const std::string& option) {
  return !option.starts_with("--") && (option.ends_with("c") || option.ends_with("m"));
}

// Options of the interpreters that have a word of their own.
bool TakesValue(const std::string& option) {
  return option == "-X" || option == "-W" || option == "-o" || option == "--check-hash-based-pycs";
}

bool HasTemplate(std::string_view word) {
  return word.find('{') != std::string_view::npos;
}

bool IsOutputFlag(std::string_view flag) {
  return std::any_of(kOutputWords.begin(), kOutputWords.end(), [&](std::string_view word) {
    return flag.find(word) != std::string_view::npos;
  });
}

// A word that may well be a path: no number, no URL, no list.
bool LooksLikeFile(const std::string& word) {
  double number = 0;
  if (word.empty() || HasTemplate(word) || absl::SimpleAtod(word, &number)) return false;
  if (word.find("://") != std::string::npos || word.find_first_of(" \n,=") != std::string::npos)
    return false;
  return word.find('/') != std::string::npos || word.find('.') != std::string::npos;
}

// One word after the program, with the flag it follows.
struct Word {
  std::string flag;  // "" for a positional word
  std::string text;
};

// --flag=value and --flag value read alike.
std::vector<Word> Words(const v1::Plan& plan, int begin) {
  std::vector<Word> words;
  std::string flag;
  for (int i = begin; i < plan.argv_size(); ++i) {
    const std::string& word = plan.argv(i);
    const size_t equal = word.find('=');
    if (word.starts_with("-") && equal != std::string::npos) {
      flag = word.substr(0, equal);
      words.push_back({flag, word.substr(equal + 1)});
    } else if (word.starts_with("-")) {
      flag = word;
    } else {
      words.push_back({flag, word});
      // Of Megatron's flags those for data take several words; of others the next word is
      // positional.
      if (!Contains(kPrefixFlags, flag)) flag.clear();
    }
  }
  return words;
}

class Collector {
 public:
  explicit Collector(const std::string& working_dir) : working_dir_(working_dir) {}

  void Take(const Word& word, bool trainer) {
    double weight = 0;
    if (word.text.empty() || HasTemplate(word.text) || !IsValidUtf8(word.text)) return;
    if (Contains(kPrefixFlags, word.flag)) {
      if (absl::SimpleAtod(word.text, &weight)) return;
      for (const char* suffix : {".bin", ".idx"}) Add(word.text + suffix, trainer);
      if (!trainer) Add(word.text, false);
    } else if (Contains(kSaveFlags, word.flag)) {
      files.written.push_back(Absolute(word.text));
    } else if (trainer) {
      if (Contains(kFileFlags, word.flag)) Add(word.text, true);
    } else if (!IsOutputFlag(word.flag) && LooksLikeFile(word.text)) {
      Add(word.text, false);
    }
  }

  void Add(const std::string& path, bool required) {
    auto& list = required ? files.required : files.optional;
    if (!required && list.size() == kMostOptional) return;
    const std::string absolute = Absolute(path);
    if (!Contains(files.required, absolute) && !Contains(list, absolute)) list.push_back(absolute);
  }

  CommandFiles files;

 private:
  std::string Absolute(const std::string& path) const {
    return path.starts_with('/') ? path : absl::StrCat(working_dir_, "/", path);
  }

  const std::string& working_dir_;
};

}  // namespace

bool IsPython(const std::string& program) {
  return IsInterpreter(program) && BaseName(program).starts_with("python");
}

bool NeedsDevices(const v1::Plan& plan, uint32_t node) {
  if (plan.nodes(static_cast<int>(node)).host().gpus_size() > 0) return true;
  if (plan.argv().empty() || BaseName(plan.argv(0)) != "muster-train") return false;
  bool cuda = false;  // the last one counts
  for (const Word& word : Words(plan, 1)) {
    if (word.flag == "--device") cuda = word.text == "cuda";
  }
  return cuda;
}

CommandFiles FilesOf(const v1::JobSpec& spec, const v1::Plan& plan) {
  Collector collector(spec.working_dir());
  if (plan.argv().empty()) return collector.files;
  const bool trainer = BaseName(plan.argv(0)) == "muster-train";
  int begin = 1;
  if (IsInterpreter(plan.argv(0))) {
    while (begin < plan.argv_size() && plan.argv(begin).starts_with("-") &&
           !RunsNoScript(plan.argv(begin))) {
      begin += TakesValue(plan.argv(begin)) ? 2 : 1;
    }
    const bool script = begin < plan.argv_size() && !plan.argv(begin).starts_with("-");
    if (script && !HasTemplate(plan.argv(begin)) && IsValidUtf8(plan.argv(begin)))
      collector.Add(plan.argv(begin), true);
    begin += script ? 1 : 2;
  }
  for (const Word& word : Words(plan, begin)) collector.Take(word, trainer);
  return collector.files;
}

}  // namespace muster::preflight
