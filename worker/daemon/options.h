#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace muster::worker {

// Command line of musterd.
struct Options {
  std::string name;                 // default: the host name
  std::vector<std::string> listen;  // IP:PORT; the Unix socket is always there
  std::string state_dir;            // empty: see StateDirPath
  std::string tls_dir;              // certificates; empty: tls in the state folder
  uint32_t idle_exit_s = 0;         // 0: never; of a bridge: its default
  uint32_t fake_devices = 0;
  bool bridge = false;  // `musterd bridge`
  bool background = false;
  bool checksum = false;
  bool version = false;
  bool json = false;
  bool help = false;
};

// InvalidArgument names the word, the reason and the nearest option.
absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& words);

// The text of --help.
extern const char kHelp[];

}  // namespace muster::worker
