#include "controller/hostfile/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "controller/hostfile/text.h"

namespace muster::hostfile {
namespace {

absl::Status NotIpv4(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(
      fmt::format("{} is not an IPv4 address: {}", Quoted(text), why));
}

absl::Status CheckIpv4Range(std::string_view text, const Address& address) {
  if (address.bytes[0] == 0) {
    return absl::InvalidArgumentError(
        fmt::format("{} is not a host: 0.0.0.0/8 means \"this network\"", Quoted(text)));
  }
  if (address.bytes[0] >= 224) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is not a host: it is a multicast, reserved or broadcast address", Quoted(text)));
  }
  return absl::OkStatus();
}

absl::Status CheckIpv6Range(std::string_view text, const Address& address) {
  const auto& b = address.bytes;
  const bool ten_zeros = std::all_of(b.begin(), b.begin() + 10, [](uint8_t x) { return x == 0; });
  if (std::all_of(b.begin(), b.end(), [](uint8_t x) { return x == 0; })) {
    return absl::InvalidArgumentError(
        fmt::format("{} is not a host: it is the unspecified address", Quoted(text)));
  }
  if (b[0] == 0xFF) {
    return absl::InvalidArgumentError(
        fmt::format("{} is not a host: it is a multicast address", Quoted(text)));
  }
  if (b[0] == 0xFE && (b[1] & 0xC0) == 0x80) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is a link-local address: it names another host on each machine; use a global or "
        "unique local address",
        Quoted(text)));
  }
  if (ten_zeros && b[10] == 0xFF && b[11] == 0xFF) {
    return absl::InvalidArgumentError(fmt::format("{} is an IPv4-mapped address; write {}.{}.{}.{}",
                                                  Quoted(text), b[12], b[13], b[14], b[15]));
  }
  return absl::OkStatus();
}

}  // namespace

bool Address::IsLoopback() const {
  if (!v6) return bytes[0] == 127;
  return bytes[15] == 1 &&
         std::all_of(bytes.begin(), bytes.end() - 1, [](uint8_t x) { return x == 0; });
}

std::string Address::Key() const {
  std::string key = v6 ? "6:" : "4:";
  key.append(bytes.begin(), bytes.end());
  return key;
}

bool MustBeIpv4(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  const std::string_view last = name.substr(name.rfind('.') + 1);
  return IsDigits(last) || last.starts_with("0x") || last.starts_with("0X");
}

absl::StatusOr<Address> ParseIpv4(std::string_view text) {
  Address address;
  std::string_view rest = text;
  for (size_t part = 0; part < 4; ++part) {
    const size_t dot = rest.find('.');
    if (part < 3 && dot == std::string_view::npos) {
      return NotIpv4(text, "it needs four numbers, as in 10.0.0.1");
    }
    const std::string_view number = part < 3 ? rest.substr(0, dot) : rest;
    rest = part < 3 ? rest.substr(dot + 1) : std::string_view();
    if (part == 3 && number.ends_with('.')) return NotIpv4(text, "remove the dot at the end");
    if (part == 3 && number.find('.') != std::string_view::npos) {
      return NotIpv4(text, "it needs four numbers, as in 10.0.0.1");
    }
    if (!IsDigits(number)) return NotIpv4(text, "each part must be a decimal number 0-255");
    if (number.size() > 1 && number[0] == '0') {
      return NotIpv4(text, "leading zeros are read as octal by some programs");
    }
    const std::optional<uint32_t> value = ParseDecimal(number);
    if (!value || *value > 255) return NotIpv4(text, "each part must be a decimal number 0-255");
    address.bytes[part] = static_cast<uint8_t>(*value);
  }
  if (absl::Status status = CheckIpv4Range(text, address); !status.ok()) return status;
  return address;
}

absl::StatusOr<Address> ParseIpv6(std::string_view text) {
  if (text.find('%') != std::string_view::npos) {
    return absl::InvalidArgumentError(fmt::format(
        "{} has a zone (%): it means something only on one machine; use a global address",
        Quoted(text)));
  }
  Address address;
  address.v6 = true;
  if (inet_pton(AF_INET6, std::string(text).c_str(), address.bytes.data()) != 1) {
    return absl::InvalidArgumentError(fmt::format("{} is not an IPv6 address", Quoted(text)));
  }
  if (absl::Status status = CheckIpv6Range(text, address); !status.ok()) return status;
  return address;
}

absl::StatusOr<Address> ParseAddress(std::string_view text) {
  if (text.find(':') != std::string_view::npos || text.starts_with('[')) {
    return ParseIpv6(WithoutBrackets(text));
  }
  return ParseIpv4(text);
}

std::string_view WithoutBrackets(std::string_view text) {
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    return text.substr(1, text.size() - 2);
  }
  return text;
}

}  // namespace muster::hostfile
