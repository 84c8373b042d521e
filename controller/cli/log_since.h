#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string_view>

namespace muster::cli {

// `--since`: a duration before `now_ns` ("10m", "1h30m", "90s", "2d"), a local time of today
// ("14:03", "14:03:20"), a local date ("2026-11-29", "2026-11-29 14:03:20", a T between is fine,
// with Z behind it is UTC), or "@" and seconds since 1970. The moment in ns since 1970. Reads the
// time zone; else pure.
absl::StatusOr<int64_t> ParseSince(std::string_view text, int64_t now_ns);

}  // namespace muster::cli
