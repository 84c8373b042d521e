#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::config {

// "8GiB", "1.5 TB", "512m" (MiB, as any unit of one letter), "1024": bytes, or nothing when it is
// no such text, is negative, or does not fit.
std::optional<int64_t> ParseBytes(std::string_view text);

}  // namespace muster::config
