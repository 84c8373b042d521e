#include "controller/cli/completion_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace muster::cli {
namespace {

// The words of "a|b|c" with blanks between; empty when the value is not such a list.
std::string Choices(std::string value) {
  if (value.find('|') == std::string::npos) return "";
  std::replace(value.begin(), value.end(), '|', ' ');
  return value;
}

std::string BashValue(const std::string& value) {
  if (value == "FILE") return "_muster_files -f";
  if (value == "DIR") return "_muster_files -d";
  if (value == "JOB") return "_muster_words \"$(_muster_jobs)\"";
  if (const std::string choices = Choices(value); !choices.empty()) {
    return fmt::format("_muster_words '{}'", choices);
  }
  return ":";
}

// For 'single quotes' in zsh's _arguments and in fish.
std::string Quoted(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (special.find(c) != std::string_view::npos) out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

std::string ZshAction(const std::string& value) {
  if (value == "FILE") return "_files";
  if (value == "DIR") return "_files -/";
  if (value == "JOB") return "_muster_jobs";
  const std::string choices = Choices(value);
  return choices.empty() ? "" : "(" + choices + ")";
}

std::string FishAction(const std::string& value) {
  if (value == "FILE" || value == "DIR") return " -rF";
  if (value == "JOB") return " -xa '(__muster_jobs)'";
  const std::string choices = Choices(value);
  return choices.empty() ? " -x" : " -xa '" + choices + "'";
}

constexpr char kListJobs[] =
    R"sh(muster ps --json 2>/dev/null | grep -oE '"(job|name)":"[^"\\]+"' | cut -d '"' -f 4)sh";

constexpr char kBashHelpers[] = R"(
_muster_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }
_muster_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")
}
)";

constexpr char kBashBegin[] = R"(
_muster() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= word
  COMPREPLY=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [[ $word == -- ]]; then _muster_files -f; return; fi
    if [[ -z $command && $word != -* ]]; then command=$word; fi
  done
  case $command in
)";

}  // namespace

std::string BashCompletion(const std::vector<CommandWords>& commands) {
  std::string out = "# bash completion for muster; made by `muster completion bash`.\n";
  out += fmt::format("_muster_jobs() {{ echo last; {}; }}", kListJobs);
  out += kBashHelpers;
  out += kBashBegin;
  auto end = std::back_inserter(out);
  std::string names;
  for (const CommandWords& command : commands) names += command.name + " ";
  fmt::format_to(end, "    '') _muster_words '{}--help --version' ;;\n", names);
  for (const CommandWords& command : commands) {
    fmt::format_to(end, "    {})\n      case $prev in\n", command.name);
    std::string flags;
    for (const FlagWords& flag : command.flags) {
      flags += (flags.empty() ? "" : " ") + flag.name;
      if (flag.value.empty()) continue;
      const std::string pattern =
          flag.short_name.empty() ? flag.name : flag.name + "|" + flag.short_name;
      fmt::format_to(end, "        {}) {}; return ;;\n", pattern, BashValue(flag.value));
    }
    fmt::format_to(end,
                   "      esac\n      if [[ $cur == -* ]]; then\n        _muster_words '{}'\n"
                   "      else\n        {}\n      fi ;;\n",
                   flags, BashValue(command.positional));
  }
  out += "  esac\n}\ncomplete -F _muster muster\n";
  return out;
}

std::string ZshCompletion(const std::vector<CommandWords>& commands) {
  std::string out =
      "#compdef muster\n# zsh completion for muster; made by `muster completion zsh`.\n";
  auto end = std::back_inserter(out);
  fmt::format_to(end,
                 "_muster_jobs() {{\n  local -a jobs\n  jobs=(last ${{(f)\"$({})\"}})\n"
                 "  compadd -a jobs\n}}\n_muster() {{\n  local -a commands\n  commands=(\n",
                 kListJobs);
  for (const CommandWords& command : commands) {
    fmt::format_to(end, "    '{}:{}'\n", command.name, Quoted(command.help, ":"));
  }
  out +=
      "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
      "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n";
  for (const CommandWords& command : commands) {
    fmt::format_to(end, "    {})\n      _arguments \\\n", command.name);
    for (const FlagWords& flag : command.flags) {
      const std::string help = Quoted(flag.help, "[]:");
      const std::string value = flag.value.empty() ? ""
                                                   : fmt::format(":{}:{}", Quoted(flag.value, ":"),
                                                                 ZshAction(flag.value));
      fmt::format_to(end, "        '{}[{}]{}' \\\n", flag.name, help, value);
      if (!flag.short_name.empty()) {
        fmt::format_to(end, "        '{}[{}]{}' \\\n", flag.short_name, help, value);
      }
    }
    fmt::format_to(end, "        '*:{}:{}' ;;\n", Quoted(command.positional, ":"),
                   ZshAction(command.positional));
  }
  out += "  esac\n}\n_muster \"$@\"\n";
  return out;
}

std::string FishCompletion(const std::vector<CommandWords>& commands) {
  std::string out = "# fish completion for muster; made by `muster completion fish`.\n";
  auto end = std::back_inserter(out);
  fmt::format_to(end, "function __muster_jobs\n  echo last\n  {}\nend\ncomplete -c muster -f\n",
                 kListJobs);
  for (const CommandWords& command : commands) {
    fmt::format_to(end, "complete -c muster -n __fish_use_subcommand -a {} -d '{}'\n", command.name,
                   Quoted(command.help, "\\"));
  }
  for (const CommandWords& command : commands) {
    const std::string when =
        fmt::format("complete -c muster -n '__fish_seen_subcommand_from {}'", command.name);
    for (const FlagWords& flag : command.flags) {
      const std::string short_name =
          flag.short_name.empty() ? "" : " -s " + flag.short_name.substr(1);
      fmt::format_to(end, "{}{} -l {}{} -d '{}'\n", when, short_name, flag.name.substr(2),
                     flag.value.empty() ? "" : FishAction(flag.value), Quoted(flag.help, "\\"));
    }
    if (command.positional == "JOB") fmt::format_to(end, "{} -a '(__muster_jobs)'\n", when);
    if (command.positional == "FILE") fmt::format_to(end, "{} -F\n", when);
    if (const std::string choices = Choices(command.positional); !choices.empty()) {
      fmt::format_to(end, "{} -a '{}'\n", when, choices);
    }
  }
  return out;
}

}  // namespace muster::cli
