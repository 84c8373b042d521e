#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include <map>
#include <memory>
#include <string>

#include "controller/nodes/dial_gate.h"

namespace muster::nodes::ssh {

// Lets only so many log in at a time on a host that others are reached through: all of its hosts
// are dialled at once, and an sshd throws away what is more than its MaxStartups (10). Any thread.
class Bastions {
 public:
  // Waits for a place on the host, or until `stop` is set.
  DialGate::Place Enter(const std::string& host, const StopSignal& stop)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Mutex mutex_;
  std::map<std::string, std::unique_ptr<DialGate>> gates_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::nodes::ssh
