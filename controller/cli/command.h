#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

// The subcommands of `muster`, one file each. Each Add* puts its flags and help on the app and
// gives back what runs it.

namespace muster::cli {

// What the command line says beyond the flags.
struct Invocation {
  bool has_dashes = false;           // there was a `--`
  std::vector<std::string> command;  // the words after it, bytes as given
};

struct Command {
  CLI::App* app = nullptr;
  std::function<int(const Invocation&)> run;  // the exit code; has printed its errors
  bool takes_command = false;                 // words after `--` are allowed
};

Command AddSubmit(CLI::App& root);
Command AddPlan(CLI::App& root);
Command AddCheck(CLI::App& root);
Command AddHosts(CLI::App& root);
Command AddPs(CLI::App& root);
Command AddLogs(CLI::App& root);
Command AddStop(CLI::App& root);
Command AddWhy(CLI::App& root);
Command AddCleanup(CLI::App& root);
Command AddStage(CLI::App& root);
Command AddBundle(CLI::App& root);
Command AddNodes(CLI::App& root);
Command AddServe(CLI::App& root);
Command AddCert(CLI::App& root);
Command AddVersion(CLI::App& root);
Command AddCompletion(CLI::App& root);

// `muster` with these arguments (without the program's name): the exit code. Whole process: it
// ignores SIGPIPE.
int Main(std::vector<std::string> arguments);

}  // namespace muster::cli
