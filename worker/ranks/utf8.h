#pragma once

#include <string>
#include <string_view>

namespace muster::ranks {

// `text` with every byte that is not part of valid UTF-8 replaced by '?': paths and command lines
// may hold any bytes, protobuf strings may not.
std::string ToUtf8(std::string_view text);

}  // namespace muster::ranks
