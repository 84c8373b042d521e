// muster-shim: parent of one rank. musterd starts it as `muster-shim RANK_FOLDER` in a session of
// its own, with a listening socket on descriptor 3; people have no reason to.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "common/version.h"
#include "worker/shim/frame.h"
#include "worker/shim/shim.h"

namespace {

using namespace muster;        // NOLINT(google-build-using-namespace): this file is the program
using namespace muster::shim;  // NOLINT(google-build-using-namespace)

constexpr char kHelp[] =
    "usage: muster-shim RANK_FOLDER\n"
    "\n"
    "Parent of one rank of a Muster job; started by musterd with a listening socket on descriptor "
    "3.\n"
    "\n"
    "  --version  print the version (with --json: as JSON)\n"
    "  --help     print this text\n";

int PrintVersion(bool json) {
  if (json) {
    std::printf("{\"program\":\"muster-shim\",\"version\":\"%s\"}\n", kVersion);
  } else {
    std::printf("muster-shim %s\n", kVersion);
  }
  return 0;
}

int Usage(const std::string& reason) {
  std::fprintf(stderr, "muster-shim: %s\n%s", reason.c_str(), kHelp);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  bool version = false;
  bool json = false;
  std::string folder;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--help" || word == "-h") return std::fputs(kHelp, stdout) < 0 ? 1 : 0;
    if (word == "--version") {
      version = true;
    } else if (word == "--json") {
      json = true;
    } else if (!word.empty() && word[0] == '-') {
      return Usage("unknown option " + word);
    } else {
      folder = word;
    }
  }
  if (version) return PrintVersion(json);
  if (folder.empty()) return Usage("no rank folder given");
  if (chdir(folder.c_str()) != 0) {
    std::fprintf(stderr, "muster-shim: chdir %s: %s\n", folder.c_str(), std::strerror(errno));
    return 1;
  }
  if (fcntl(kListenFd, F_SETFD, FD_CLOEXEC) != 0) return Usage("no socket on descriptor 3");
  close_range(kListenFd + 1, ~0u, 0);
  std::string error;
  const auto file = ReadWholeFile(kSpecFile, kMaxPayload + kFrameHeaderSize, error);
  auto spec = file ? DecodeRankSpec(*file, error) : std::nullopt;
  if (!spec) {
    std::fprintf(stderr, "muster-shim: %s/%s: %s\n", folder.c_str(), kSpecFile, error.c_str());
    return 1;
  }
  return Shim(std::move(*spec), UniqueFd(kListenFd), Clock::Real(), facts::ProcReader::Real())
      .Run();
}
