// muster: the command line, and (`muster serve`) the controller. Each subcommand is a file beside
// this one.
#include <string>
#include <vector>

#include "controller/cli/command.h"

int main(int argc, char** argv) {
  return muster::cli::Main(std::vector<std::string>(argv + 1, argv + argc));
}
