#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

// IPv4 and IPv6 as a hostfile may name a host: no zones, no ranges, nothing that is not one
// machine.

namespace muster::hostfile {

struct Address {
  bool v6 = false;
  std::array<uint8_t, 16> bytes{};  // network order; IPv4 uses the first four

  bool IsLoopback() const;
  // Equal for equal addresses, however they are written.
  std::string Key() const;
};

// True if the last label of `name` is all digits or starts with 0x: other programs would read such
// a name as an IPv4 address, so it must be one.
bool MustBeIpv4(std::string_view name);

// Four decimals 0-255 without leading zeros.
absl::StatusOr<Address> ParseIpv4(std::string_view text);

// `text` without brackets.
absl::StatusOr<Address> ParseIpv6(std::string_view text);

// Either form, IPv6 also in brackets: the value of `addr=`.
absl::StatusOr<Address> ParseAddress(std::string_view text);

// `[text]` -> `text`; other texts as they are.
std::string_view WithoutBrackets(std::string_view text);

}  // namespace muster::hostfile
