#pragma once

#include <sys/types.h>

#include <array>
#include <string>

#include "common/unique_fd.h"
#include "worker/shim/rank_spec.h"
#include "worker/shim/shim_status.h"

namespace muster::shim {

struct RankChild {
  pid_t pid = 0;                            // 0: could not be started
  std::array<UniqueFd, kNumStreams> pipes;  // read ends, non-blocking
  bool in_cgroup = false;
  // When pid is 0: the reason ("exec /x/train: No such file or directory") and the code a shell
  // would give.
  std::string error;
  int exit_code = 0;
};

// fork + exec of the rank: own session, killed when the shim dies, default signals, limits raised
// to their hard values, stdin from /dev/null, and no descriptor but 0, 1, 2 and the event pipe
// (MUSTER_EVENT_FD=3). Returns after the exec has succeeded or failed.
RankChild StartRank(const RankSpec& spec);

}  // namespace muster::shim
