#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "worker/shim/log_file.h"

namespace muster::shim {

// Everything the shim needs to start its rank: the content of the rank folder's `spec` file
// (docs/formats.md, "Rank spec"). Bytes throughout, because POSIX promises no encoding.
struct RankSpec {
  std::vector<std::string> argv;  // never empty
  std::vector<std::pair<std::string, std::string>>
      env;  // the whole environment but MUSTER_EVENT_FD
  std::string working_dir;
  std::string cgroup_procs;    // cgroup.procs file that the rank joins before exec; "" = none
  std::vector<uint32_t> cpus;  // that the rank is bound to; none = not bound
  LogQuota quota;              // of each of its logs

  friend bool operator==(const RankSpec&, const RankSpec&) = default;
};

std::string EncodeRankSpec(const RankSpec& spec);

// Nothing, and the reason in `error`, for bytes that EncodeRankSpec did not write or that cannot be
// executed (no argv, a NUL inside a word, a '=' in a name).
std::optional<RankSpec> DecodeRankSpec(std::string_view file, std::string& error);

}  // namespace muster::shim
