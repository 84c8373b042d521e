#include "controller/hostfile/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <map>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/suggest.h"
#include "controller/hostfile/address.h"
#include "controller/hostfile/host_name.h"
#include "controller/hostfile/text.h"

namespace muster::hostfile {
namespace {

constexpr uint32_t kMaxDevice = 4095;
constexpr std::array<std::string_view, 5> kTransports = {"ssh", "openssh", "command", "direct",
                                                         "local"};

absl::Status BadValue(std::string_view key, std::string_view value, std::string_view why) {
  const bool glued_comment =
      value.find('#') != std::string_view::npos || value.find("//") != std::string_view::npos;
  return absl::InvalidArgumentError(
      fmt::format("bad {}={}: {}{}", key, value.empty() ? "" : Quoted(value), why,
                  glued_comment ? "; a comment needs a space before # or //" : ""));
}

absl::StatusOr<uint32_t> ParseNumber(std::string_view key, std::string_view value, uint32_t max) {
  const std::optional<uint32_t> number = ParseDecimal(value);
  if (!number || *number < 1 || *number > max) {
    return BadValue(key, value, fmt::format("{} must be a whole number from 1 to {}", key, max));
  }
  return *number;
}

// --- one function a key: value -> field of the host ---

absl::Status SetSlots(std::string_view key, std::string_view value, v1::Host& host) {
  MUSTER_ASSIGN_OR_RETURN(const uint32_t slots, ParseSlots(key, value));
  host.set_slots(slots);
  return absl::OkStatus();
}

absl::Status SetMaxSlots(std::string_view key, std::string_view value, v1::Host& host) {
  MUSTER_ASSIGN_OR_RETURN(const uint32_t slots, ParseSlots(key, value));
  host.set_max_slots(slots);
  return absl::OkStatus();
}

absl::Status SetPort(std::string_view key, std::string_view value, v1::Host& host) {
  MUSTER_ASSIGN_OR_RETURN(const uint32_t port, ParseNumber(key, value, kMaxPort));
  host.set_port(port);
  return absl::OkStatus();
}

absl::Status SetWorkerPort(std::string_view key, std::string_view value, v1::Host& host) {
  MUSTER_ASSIGN_OR_RETURN(const uint32_t port, ParseNumber(key, value, kMaxPort));
  host.set_worker_port(port);
  return absl::OkStatus();
}

absl::Status SetUser(std::string_view /*key*/, std::string_view value, v1::Host& host) {
  MUSTER_RETURN_IF_ERROR(CheckUser(value));
  host.set_user(std::string(value));
  return absl::OkStatus();
}

absl::Status SetGpus(std::string_view key, std::string_view value, v1::Host& host) {
  std::bitset<kMaxDevice + 1> seen;
  std::string_view rest = value;
  while (true) {
    const size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const size_t dash = item.find('-');
    const std::optional<uint32_t> low = ParseDecimal(item.substr(0, dash));
    const std::optional<uint32_t> high =
        dash == std::string_view::npos ? low : ParseDecimal(item.substr(dash + 1));
    if (!low || !high || *low > kMaxDevice || *high > kMaxDevice) {
      return BadValue(
          key, value,
          fmt::format("write device numbers 0-{} or ranges, as in gpus=0,2-3", kMaxDevice));
    }
    if (*high < *low) {
      return BadValue(key, value,
                      fmt::format("the range {} must ascend; list the devices in your order with "
                                  "commas",
                                  item));
    }
    for (uint32_t device = *low; device <= *high; ++device) {
      if (seen[device]) {
        return BadValue(key, value, fmt::format("device {} is named twice", device));
      }
      seen[device] = true;
      host.add_gpus(device);
    }
    if (comma == std::string_view::npos) return absl::OkStatus();
    rest.remove_prefix(comma + 1);
  }
}

absl::Status SetType(std::string_view key, std::string_view value, v1::Host& host) {
  const auto allowed = [](char c) {
    return IsAlnum(c) || c == '.' || c == '_' || c == '+' || c == '-';
  };
  if (!IsAlnum(value[0]) || value.size() > 64 ||
      !std::all_of(value.begin(), value.end(), allowed)) {
    return BadValue(key, value,
                    "1-64 letters, digits, '.', '_', '+' and '-', the first a letter or digit");
  }
  host.set_type(std::string(value));
  return absl::OkStatus();
}

absl::Status SetAddr(std::string_view key, std::string_view value, v1::Host& host) {
  const absl::StatusOr<Address> address = ParseAddress(value);
  if (!address.ok()) return Annotate(address.status(), "bad addr");
  if (address->IsLoopback()) {
    return BadValue(key, value, "a loopback address is not reachable from other hosts");
  }
  host.set_addr(std::string(WithoutBrackets(value)));
  return absl::OkStatus();
}

absl::Status SetIface(std::string_view key, std::string_view value, v1::Host& host) {
  const auto allowed = [](char c) { return IsAlnum(c) || c == '.' || c == '_' || c == '-'; };
  if (value.size() > 15 || value == "." || value == ".." ||
      !std::all_of(value.begin(), value.end(), allowed)) {
    return BadValue(key, value,
                    "one exact interface name of 1-15 letters, digits, '.', '_' and '-', as in "
                    "iface=bond0.20; no '^', '=' or lists");
  }
  host.set_iface(std::string(value));
  return absl::OkStatus();
}

absl::Status SetTransport(std::string_view key, std::string_view value, v1::Host& host) {
  if (std::find(kTransports.begin(), kTransports.end(), value) == kTransports.end()) {
    return BadValue(key, value,
                    "transport is ssh, openssh, command, direct or local" +
                        DidYouMean(value, {kTransports.begin(), kTransports.end()}));
  }
  host.set_transport(std::string(value));
  return absl::OkStatus();
}

struct Key {
  std::string_view name;
  std::string_view canonical;  // aliases share it
  absl::Status (*set)(std::string_view key, std::string_view value, v1::Host& host);
};

// The first of equally near names is suggested, so the usual ones lead.
constexpr std::array kKeys = {
    Key{"slots", "slots", SetSlots},
    Key{"gpus", "gpus", SetGpus},
    Key{"cpu", "slots", SetSlots},
    Key{"count", "slots", SetSlots},
    Key{"port", "port", SetPort},
    Key{"user", "user", SetUser},
    Key{"username", "user", SetUser},
    Key{"addr", "addr", SetAddr},
    Key{"iface", "iface", SetIface},
    Key{"type", "type", SetType},
    Key{"transport", "transport", SetTransport},
    Key{"worker_port", "worker_port", SetWorkerPort},
    Key{"max_slots", "max_slots", SetMaxSlots},
    Key{"max-slots", "max_slots", SetMaxSlots},
};
constexpr std::string_view kSpare = "spare";

const Key* FindKey(std::string_view name) {
  const auto* it =
      std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& key) { return key.name == name; });
  return it == kKeys.end() ? nullptr : it;
}

std::vector<std::string> KnownWords() {
  std::vector<std::string> words;
  words.reserve(kKeys.size() + 1);
  for (const Key& key : kKeys) words.emplace_back(key.name);
  words.emplace_back(kSpare);
  return words;
}

absl::Status NoBlanksAroundEqual(std::string_view word) {
  return absl::InvalidArgumentError(
      fmt::format("unexpected {}: options are KEY=VALUE without blanks around '='", Quoted(word)));
}

// A word without '=' that is not `spare`.
absl::Status UnexpectedWord(std::string_view word, std::string_view next) {
  if (next.starts_with('=')) return NoBlanksAroundEqual(word);
  if (IsDigits(word)) {
    return absl::InvalidArgumentError(
        fmt::format("unexpected number {}: write slots={}", Quoted(word), word));
  }
  if (const Key* key = FindKey(word)) {
    return absl::InvalidArgumentError(fmt::format("{} needs a value: {}=...", word, key->name));
  }
  if (word.starts_with("/*")) {
    return absl::InvalidArgumentError("/* */ comments are not known; use # or //");
  }
  const std::string hint = DidYouMean(word, {std::string(kSpare)});
  return absl::InvalidArgumentError(
      fmt::format("unexpected word {}{}", Quoted(word),
                  hint.empty() ? ": one host a line, or a list such as node[01-02]; options are "
                                 "KEY=VALUE or spare"
                               : hint));
}

absl::Status CheckTogether(const v1::Host& host) {
  if (host.has_max_slots() && host.has_slots() && host.max_slots() < host.slots()) {
    return absl::InvalidArgumentError(
        fmt::format("max_slots={} is less than slots={}", host.max_slots(), host.slots()));
  }
  return absl::OkStatus();
}

// gpus= gives the number of slots; slots= may repeat it.
absl::Status SlotsFromGpus(v1::Host& host) {
  const auto count = static_cast<uint32_t>(host.gpus_size());
  if (count == 0) return absl::OkStatus();
  if (host.has_slots() && host.slots() != count) {
    return absl::InvalidArgumentError(fmt::format(
        "gpus= names {} devices, slots= says {}: leave slots out", count, host.slots()));
  }
  host.set_slots(count);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<uint32_t> ParseSlots(std::string_view key, std::string_view value) {
  return ParseNumber(key, value, kMaxSlots);
}

absl::StatusOr<v1::Host> ParseOptions(std::span<const std::string_view> words, bool several_hosts,
                                      bool has_user) {
  v1::Host host;
  std::map<std::string_view, std::string_view> given;  // canonical key -> key as written
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const std::string_view next = i + 1 < words.size() ? words[i + 1] : std::string_view();
    const size_t equal = word.find('=');
    const std::string_view name = word.substr(0, equal);
    const Key* key = FindKey(name);

    if (equal == std::string_view::npos && word != kSpare) return UnexpectedWord(word, next);
    if (name.empty()) return NoBlanksAroundEqual(word);
    if (equal != std::string_view::npos && name == kSpare) {
      return absl::InvalidArgumentError("spare is a bare word: write spare, without '='");
    }
    if (key == nullptr && word != kSpare) {
      return absl::InvalidArgumentError(
          fmt::format("unknown key {}{}", Quoted(name), DidYouMean(name, KnownWords())));
    }
    const std::string_view canonical = key == nullptr ? kSpare : key->canonical;
    const auto [earlier, is_new] = given.emplace(canonical, name);
    if (!is_new) {
      return absl::InvalidArgumentError(
          earlier->second == name ? fmt::format("{} is given twice", name)
                                  : fmt::format("{} is given twice: {} is the same key as {}",
                                                canonical, name, earlier->second));
    }
    if (key == nullptr) {
      host.set_spare(true);
      continue;
    }
    if (canonical == "user" && has_user) {
      return absl::InvalidArgumentError(
          fmt::format("user is given twice: by USER@ and by {}=", name));
    }
    if (canonical == "addr" && several_hosts) {
      return absl::InvalidArgumentError(
          "addr= on a line that names several hosts: give each host "
          "its own line");
    }
    const std::string_view value = word.substr(equal + 1);
    if (value.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("nothing after {}=: write {}=VALUE without "
                      "blanks around '='",
                      name, name));
    }
    MUSTER_RETURN_IF_ERROR(key->set(name, value, host));
  }
  MUSTER_RETURN_IF_ERROR(SlotsFromGpus(host));
  MUSTER_RETURN_IF_ERROR(CheckTogether(host));
  return host;
}

}  // namespace muster::hostfile
