// The command line as a whole: parse, say what is wrong with it, run the subcommand.
#include <absl/status/status.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <set>

#include "common/suggest.h"
#include "common/version.h"
#include "controller/cli/command.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/options.h"
#include "controller/cli/output.h"

namespace muster::cli {
namespace {

constexpr char kAbout[] =
    R"(Runs one command as the ranks of a distributed job on every machine of a hostfile, follows it,
stops all of it, and proves that nothing is left.
)";

constexpr char kFooter[] =
    R"(Examples:
  muster plan recipes/tiny_cpu.toml --hostfile hosts     what would run where
  muster check --hostfile hosts                          are the machines fit? what to mend
  muster submit recipes/tiny_cpu.toml --hostfile hosts   run it and follow it
  muster submit --hostfile hosts -- python train.py      any command as ranks
  muster ps                                              jobs
  muster logs -f last --rank 0,3                         what ranks write
  muster why last                                        why it ended as it did
  muster stop last                                       end all ranks, verified

`muster COMMAND --help` says more. Errors go to stderr as `muster: ...`.
Exit codes: 0 ok; 2 usage or invalid input; 120 preflight failed; 121 launch failed; 122 node lost;
  123 hang; 124 leftovers or unverified after a stop; 125 internal; 130 stopped by the user;
  otherwise the first failing rank's own code, 128 + signal for a signal.
)";

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

// What is wrong with the words that nothing took; empty when there are none.
std::string DescribeExtras(const CLI::App& root, const CLI::App* command) {
  const std::vector<std::string> extras =
      command == nullptr ? root.remaining() : command->remaining();
  if (extras.empty()) return "";
  const auto flag = std::find_if(extras.begin(), extras.end(), [](const std::string& word) {
    return word.size() > 1 && word[0] == '-';
  });
  if (flag != extras.end()) {
    const std::string name = flag->substr(0, flag->find('='));
    return "unknown flag '" + name + "'" +
           DidYouMean(name, OptionNames(command == nullptr ? root : *command));
  }
  if (command != nullptr) {
    const std::string& name = command->get_name();
    return "unexpected word '" + extras.front() + "'" +
           (name == "submit" || name == "plan" || name == "check"
                ? "; the command of a job goes after --"
                : "");
  }
  std::vector<std::string> names;
  for (const CLI::App* sub : root.get_subcommands({})) names.push_back(sub->get_name());
  return "unknown command '" + extras.front() + "'" + DidYouMean(extras.front(), names);
}

int UsageError(const CLI::App* command, const std::string& message) {
  const std::string name = command == nullptr ? "muster" : "muster " + command->get_name();
  PrintError(message + "\nsee '" + name + " --help'");
  return kExitUsage;
}

// Splits off `--` and what follows, so that a job's words are never taken for ours.
Invocation TakeCommand(std::vector<std::string>* arguments) {
  Invocation invocation;
  const auto dashes = std::find(arguments->begin(), arguments->end(), "--");
  if (dashes == arguments->end()) return invocation;
  invocation.has_dashes = true;
  invocation.command.assign(dashes + 1, arguments->end());
  arguments->erase(dashes, arguments->end());
  return invocation;
}

int Dispatch(CLI::App& root, const std::vector<Command>& commands,
             std::vector<std::string> arguments) {
  const Invocation invocation = TakeCommand(&arguments);
  if (!arguments.empty() && arguments.front() == "help") {  // `muster help submit`
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  const CLI::App* selected = nullptr;
  const auto find_selected = [&]() -> const Command* {
    for (const Command& command : commands) {
      if (root.got_subcommand(command.app)) {
        selected = command.app;
        return &command;
      }
    }
    return nullptr;
  };
  try {
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes words from the back
    root.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    WriteAll(1, root.help());
    return kExitOk;
  } catch (const CLI::CallForVersion&) {
    PrintLine(std::string("muster ") + kVersion);
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    find_selected();
    return UsageError(selected, error.what());
  }
  const Command* command = find_selected();
  if (const std::string extras = DescribeExtras(root, selected); !extras.empty()) {
    return UsageError(selected, extras);
  }
  if (command == nullptr) {
    WriteAll(2, root.help());
    return kExitUsage;
  }
  if (invocation.has_dashes && !command->takes_command) {
    return UsageError(selected, "nothing may follow `--` here");
  }
  const int code = command->run(invocation);
  // What became of a job or a controller counts more than lost lines about it.
  const bool acts =
      std::set<std::string>{"submit", "stop", "cleanup", "serve"}.contains(selected->get_name());
  return acts ? code : CheckStdout(code);
}

// With one of these closed, a socket would get its number, and our output.
void OpenStandardStreams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) (void)!open("/dev/null", O_RDWR);
  }
}

}  // namespace

int Main(std::vector<std::string> arguments) {
  std::signal(SIGPIPE, SIG_IGN);
  OpenStandardStreams();
  CLI::App root(kAbout, "muster");
  root.footer(kFooter);
  root.set_version_flag("--version", std::string(kVersion), "Print the version and exit");
  root.require_subcommand(0, 1);
  root.allow_extras();
  // A flag given twice means the last one, so that scripts can append; those that may repeat say
  // so.
  root.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  const std::vector<Command> commands = {
      AddSubmit(root),  AddPlan(root),  AddCheck(root),   AddHosts(root),
      AddPs(root),      AddLogs(root),  AddStop(root),    AddWhy(root),
      AddCleanup(root), AddStage(root), AddBundle(root),  AddNodes(root),
      AddServe(root),   AddCert(root),  AddVersion(root), AddCompletion(root)};
  for (const Command& command : commands) command.app->allow_extras();
  try {
    return Dispatch(root, commands, std::move(arguments));
  } catch (const std::exception& error) {  // out of memory, or a library that throws after all
    PrintError(std::string("internal error: ") + error.what());
    return kExitInternal;
  }
}

}  // namespace muster::cli
