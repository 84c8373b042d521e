#pragma once

#include <string>
#include <string_view>

namespace muster::engine {

// Text for people and for protobuf's string fields: broken UTF-8 and control characters other than
// a line end become '?'. Ranks' error records and argv may hold any bytes.
std::string Printable(std::string_view bytes);

// The first `max_bytes` of a text, cut between characters, with "..." if something was cut.
std::string Shorten(std::string_view text, size_t max_bytes);

}  // namespace muster::engine
