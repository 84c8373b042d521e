#pragma once

#include <absl/status/status.h>

#include <string>
#include <string_view>

// Host and user names. Pure; messages carry no location.

namespace muster::hostfile {

// RFC 1123: labels of 1-63 letters, digits and '-', none at either end; 253 bytes in all; one
// trailing dot is allowed and not counted. '_' is accepted too: see HasUnderscore.
absl::Status CheckHostName(std::string_view name);

// Not a host name by RFC 1123, but in use: worth a warning.
inline bool HasUnderscore(std::string_view name) {
  return name.find('_') != std::string_view::npos;
}

// [A-Za-z0-9_][A-Za-z0-9_.-]{0,31}
absl::Status CheckUser(std::string_view user);

// Equal for names that are one host: lower case, no trailing dot.
std::string NameKey(std::string_view name);

// localhost, localhost.localdomain, *.localhost, ip6-localhost; case and trailing dot do not
// matter.
bool IsLoopbackName(std::string_view name);

}  // namespace muster::hostfile
