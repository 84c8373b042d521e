#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <vector>

// What reading an ssh configuration needs of this machine, so that it can be read without one.

namespace muster::nodes::ssh {

// Who and where we are; the tokens %u %d %l %i of ssh_config(5) and the files below ~.
struct LocalUser {
  std::string name;
  std::string home;
  std::string host;  // of this machine
  unsigned uid = 0;
};

class ConfigSource {
 public:
  virtual ~ConfigSource() = default;
  // The file's text; nothing if it is not there. `check_owner`: PermissionDenied when somebody else
  // than this user or root may write it.
  virtual absl::StatusOr<std::optional<std::string>> Read(const std::string& path,
                                                          bool check_owner) = 0;
  // The paths that a pattern of Include means, sorted.
  virtual std::vector<std::string> Glob(const std::string& pattern) = 0;
  // `Match exec`: whether the command, run by the user's shell, ends with 0.
  virtual absl::StatusOr<bool> Run(const std::string& command) = 0;
  virtual std::optional<std::string> Env(const std::string& name) const = 0;
  virtual LocalUser User() const = 0;
};

}  // namespace muster::nodes::ssh
