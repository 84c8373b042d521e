#include "controller/plan/job_name.h"

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "controller/plan/trainer_flags.h"

namespace muster::plan {
namespace {

constexpr size_t kMaxName = 100;

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '+' ||
         c == '-';
}

// Two jobs with equal sizes but for CP or VP should not share a name, so these two appear when they
// are in use.
std::string SizesName(const Sizes& s) {
  return fmt::format("tp{}_pp{}{}{}_dp{}_mbs{}_numbs{}_gbs{}_gpus{}", s.tp, s.pp,
                     s.cp > 1 ? fmt::format("_cp{}", s.cp) : "",
                     s.vp > 1 ? fmt::format("_vp{}", s.vp) : "", s.dp, s.micro_batch,
                     s.num_microbatches, s.global_batch, s.world);
}

std::string BaseName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

bool IsScript(std::string_view word) {
  return word.ends_with(".py") || word.ends_with(".sh");
}

// "python3.11", "bash", "torchrun".
bool RunsScripts(const std::string& word) {
  const std::string name = BaseName(word);
  if (name.starts_with("python")) {
    return name.find_first_not_of("0123456789.", std::string_view("python").size()) ==
           std::string::npos;
  }
  constexpr std::string_view kOthers[] = {"sh", "bash", "dash", "zsh", "torchrun"};
  return std::find(std::begin(kOthers), std::end(kOthers), name) != std::end(kOthers);
}

// "-c", "-ec": what follows is the program itself.
bool IsCode(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && word[1] != '-' && word.ends_with('c');
}

// "--nproc_per_node 4", "-X dev"
bool MayTakeValue(std::string_view word) {
  return word == "-X" || word == "-W" || word == "-o" ||
         (word.starts_with("--") && word.find('=') == std::string_view::npos);
}

// The script or module that the interpreter `command[0]` runs, or "".
std::string ScriptOf(const google::protobuf::RepeatedPtrField<std::string>& command) {
  std::string maybe_value;  // of the flag before it
  for (int i = 1; i < command.size(); ++i) {
    if (IsCode(command[i])) return "";
    const std::string_view before = i > 1 ? std::string_view(command[i - 1]) : "";
    if (before == "-m") {
      if (command[i] == "torch.distributed.run") continue;  // torchrun's longer name
      return command[i].substr(command[i].rfind('.') + 1);
    }
    if (command[i].starts_with('-')) continue;
    if (!MayTakeValue(before) || IsScript(command[i])) return command[i];
    if (maybe_value.empty()) maybe_value = command[i];
  }
  return maybe_value;
}

}  // namespace

absl::Status CheckJobName(std::string_view name) {
  const bool characters = !name.empty() && name.size() <= kMaxName &&
                          std::all_of(name.begin(), name.end(), IsNameCharacter) &&
                          absl::ascii_isalnum(static_cast<unsigned char>(name[0]));
  if (!characters) {
    return absl::InvalidArgumentError(
        fmt::format("bad job name '{}': 1-{} letters, digits, '.', '_', '+' and '-', the first a "
                    "letter or digit",
                    name, kMaxName));
  }
  if (name == "last" || std::all_of(name.begin(), name.end(), [](char c) {
        return absl::ascii_isdigit(static_cast<unsigned char>(c));
      })) {
    return absl::InvalidArgumentError(
        fmt::format("bad job name '{}': numbers and 'last' mean jobs on the command line", name));
  }
  return absl::OkStatus();
}

std::string CommandName(const v1::JobSpec& spec) {
  const std::string& program = spec.command(0);
  std::string name = BaseName(program);
  if (RunsScripts(program)) {
    if (const std::string script = ScriptOf(spec.command()); !script.empty()) {
      const std::string base = BaseName(script);
      name = base.substr(0, std::max<size_t>(base.rfind('.'), 1));
    }
  }
  name = name.substr(0, kMaxName - 4);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !IsNameCharacter(c); }, '_');
  return CheckJobName(name).ok() ? name : "job_" + name;
}

std::string JobName(const v1::JobSpec& spec, const Sizes& sizes) {
  if (!spec.name().empty()) return spec.name();
  return IsTrainer(spec) ? SizesName(sizes) : CommandName(spec);
}

}  // namespace muster::plan
