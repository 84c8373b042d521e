#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::engine {

// Text for people and for protobuf's string fields: broken UTF-8 and control characters other than
// a line end become '?'. Ranks' error records and argv may hold any bytes.
std::string Printable(std::string_view bytes);

// The first `max_bytes` of a text, cut between characters, with "..." if something was cut.
std::string Shorten(std::string_view text, size_t max_bytes);

// "0.8 s", "47 s", "3m 12s", "2h 05m", "3d 04h". Negative counts as zero.
std::string FormatDuration(int64_t ns);

}  // namespace muster::engine
