#pragma once

#include <string>

#include "controller/nodes/ssh/config_source.h"
#include "controller/nodes/stop_signal.h"

namespace muster::nodes::ssh {

// This machine's files, environment and user. One thread; `stop` (may be null) ends a command of
// `Match exec`, which otherwise has ten seconds.
class SystemSource : public ConfigSource {
 public:
  explicit SystemSource(const StopSignal* stop);

  absl::StatusOr<std::optional<std::string>> Read(const std::string& path,
                                                  bool check_owner) override;
  std::vector<std::string> Glob(const std::string& pattern) override;
  absl::StatusOr<bool> Run(const std::string& command) override;
  std::optional<std::string> Env(const std::string& name) const override;
  LocalUser User() const override { return user_; }

 private:
  const StopSignal* const stop_;
  LocalUser user_;
};

// The user's shell, which runs ProxyCommand and `Match exec`.
std::string UserShell();

}  // namespace muster::nodes::ssh
