// muster_launch_sim FOLDER COUNT: simulated workers 127.1.0.1 ... as the controller's `local`
// transport looks for them below FOLDER. Prints "ready" when they listen, ends with its input.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "common/local_daemon.h"
#include "tests/sim/sim_workers.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: muster_launch_sim FOLDER COUNT\n");
    return 2;
  }
  rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  constexpr int kInARow = 250;
  std::vector<std::string> sockets;
  for (int i = 0; i < std::atoi(argv[2]); ++i) {
    const std::string host =
        "127.1." + std::to_string(i / kInARow) + "." + std::to_string(1 + i % kInARow);
    const std::string folder = argv[1] + std::string("/") + muster::NodeName(host);
    std::filesystem::create_directories(folder);
    sockets.push_back(muster::SocketPath(folder));
  }
  const muster::testing::SimWorkers workers({}, sockets);
  std::printf("ready\n");
  std::fflush(stdout);
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return 0;
}
