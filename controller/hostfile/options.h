#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "muster/v1/job.pb.h"

// What stands after the host: KEY=VALUE words and the bare word `spare`. One table of keys, in
// options.cc.

namespace muster::hostfile {

inline constexpr uint32_t kMaxSlots = 4096;
inline constexpr uint32_t kMaxPort = 65535;

// A host with the options set and everything else empty. `several_hosts`: the line's hostlist gives
// more than one. `has_user`: the host word had USER@.
absl::StatusOr<v1::Host> ParseOptions(std::span<const std::string_view> words, bool several_hosts,
                                      bool has_user);

// The value of slots=, cpu=, count=, or of HOST:SLOTS.
absl::StatusOr<uint32_t> ParseSlots(std::string_view key, std::string_view value);

}  // namespace muster::hostfile
