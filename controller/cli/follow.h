#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "controller/cli/client.h"
#include "controller/cli/render.h"
#include "controller/cli/signals.h"
#include "muster/v1/control.pb.h"

namespace muster::cli {

struct FollowOptions {
  int fd = 1;             // where phase lines and the ranks' lines go
  Style style;            // for that descriptor
  bool live = false;      // a terminal: one line that is drawn over shows how far the start is
  bool ask = false;       // Ctrl-C asks on the terminal; otherwise SIGINT and SIGTERM stop the job
  bool only_new = false;  // not the lines that were written before
};

struct Followed {
  enum class End { kJobEnded, kDetached };
  End end = End::kJobEnded;
  v1::Job job;  // as it ended, with kJobEnded
};

// Shows what happens to a job and all that its ranks write, until it has ended or the user leaves
// it. The controller may be killed and come back meanwhile. `signals` holds SIGINT, SIGTERM and
// SIGHUP: hanging up detaches; once a stop is asked for, a further Ctrl-C takes the grace away. The
// calling thread waits for signals, two others read streams.
absl::StatusOr<Followed> Follow(Client& client, SignalWait& signals, const std::string& job,
                                uint32_t world, const FollowOptions& options);

}  // namespace muster::cli
