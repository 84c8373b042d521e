// muster completion: scripts for shells, made from the command line itself.
#include <memory>

#include "controller/cli/command.h"
#include "controller/cli/completion_script.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/options.h"
#include "controller/cli/output.h"

namespace muster::cli {
namespace {

constexpr char kFooter[] =
    R"(Examples:
  muster completion bash > /etc/bash_completion.d/muster
  source <(muster completion bash)
  muster completion zsh > "${fpath[1]}/_muster"
  muster completion fish > ~/.config/fish/completions/muster.fish

Exit codes: 0 ok; 2 usage.
)";

FlagWords Describe(const CLI::Option& option) {
  FlagWords flag;
  flag.name = "--" + option.get_lnames().front();
  if (!option.get_snames().empty()) flag.short_name = "-" + option.get_snames().front();
  if (option.get_items_expected_max() > 0) flag.value = option.get_type_name();
  flag.help = option.get_description();
  return flag;
}

std::vector<CommandWords> DescribeCommands(const CLI::App& root) {
  std::vector<CommandWords> commands;
  for (const CLI::App* app : root.get_subcommands({})) {
    CommandWords command{app->get_name(), app->get_description(), "", {}};
    for (const CLI::Option* option : app->get_options()) {
      if (option->get_positional()) {
        command.positional = option->get_type_name();
      } else if (!option->get_lnames().empty()) {
        command.flags.push_back(Describe(*option));
      }
    }
    commands.push_back(std::move(command));
  }
  return commands;
}

int Run(const CLI::App& root, const std::string& shell) {
  const std::vector<CommandWords> commands = DescribeCommands(root);
  if (shell == "bash") {
    WriteAll(1, BashCompletion(commands));
  } else if (shell == "zsh") {
    WriteAll(1, ZshCompletion(commands));
  } else if (shell == "fish") {
    WriteAll(1, FishCompletion(commands));
  } else {
    PrintError("say which shell: muster completion bash|zsh|fish");
    return kExitUsage;
  }
  return kExitOk;
}

}  // namespace

Command AddCompletion(CLI::App& root) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* app = root.add_subcommand("completion", "Print a completion script for a shell");
  app->add_option("SHELL", *shell, "bash, zsh or fish")->type_name("bash|zsh|fish");
  app->footer(kFooter);
  return {app, [shell, &root](const Invocation&) { return Run(root, *shell); }};
}

}  // namespace muster::cli
