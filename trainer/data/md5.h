#pragma once

#include <string>
#include <string_view>

namespace muster::data {

// MD5 (RFC 1321) as 32 hex digits: the name of an index cache, not a protection against anyone.
std::string Md5(std::string_view text);

}  // namespace muster::data
