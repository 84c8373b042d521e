#include "controller/hostfile/host_word.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/status.h"
#include "controller/hostfile/address.h"
#include "controller/hostfile/host_name.h"
#include "controller/hostfile/hostlist.h"
#include "controller/hostfile/text.h"

namespace muster::hostfile {
namespace {

// `[v6]` or `[v6]:N`.
absl::Status ParseBracketed(std::string_view text, HostWord& out) {
  const size_t close = text.find(']');
  if (close == std::string_view::npos) {
    return absl::InvalidArgumentError(fmt::format("'[' without ']' in {}", Quoted(text)));
  }
  const std::string_view inside = text.substr(1, close - 1);
  if (absl::Status status = ParseIpv6(inside).status(); !status.ok()) {
    if (inside.find(':') != std::string_view::npos) return status;
    return Annotate(status, "a host that starts with '[' is an IPv6 address, not a list");
  }
  const std::string_view after = text.substr(close + 1);
  if (!after.empty() && after[0] != ':') {
    return absl::InvalidArgumentError(
        fmt::format("unexpected {} after the address {}", Quoted(after), Quoted(inside)));
  }
  out.hosts.emplace_back(inside);
  if (!after.empty()) out.suffix = std::string(after.substr(1));
  return absl::OkStatus();
}

absl::Status CheckName(const std::string& text) {
  MUSTER_RETURN_IF_ERROR(CheckHostName(text));
  return MustBeIpv4(text) ? ParseIpv4(text).status() : absl::OkStatus();
}

absl::Status Expand(std::string_view text, size_t room, HostWord& out) {
  MUSTER_ASSIGN_OR_RETURN(const Hostlist list, Hostlist::Parse(text));
  if (list.Count() > room) {
    return absl::InvalidArgumentError(
        fmt::format("more than {} hosts with {}, which names {}{}", kMaxHosts, Quoted(text),
                    list.Count() > kMaxHosts ? "at least " : "", list.Count()));
  }
  out.hosts.reserve(list.Count());
  for (uint64_t i = 0; i < list.Count(); ++i) {
    out.hosts.push_back(list.At(i));
    MUSTER_RETURN_IF_ERROR(CheckName(out.hosts.back()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HostWord> ParseHostWord(std::string_view word, size_t room) {
  HostWord out;
  std::string_view text = word;
  if (const size_t at = text.find('@'); at != std::string_view::npos) {
    const std::string_view user = text.substr(0, at);
    text.remove_prefix(at + 1);
    if (text.find('@') != std::string_view::npos) {
      return absl::InvalidArgumentError(fmt::format("more than one '@' in {}", Quoted(word)));
    }
    MUSTER_RETURN_IF_ERROR(CheckUser(user));
    if (text.empty()) {
      return absl::InvalidArgumentError(fmt::format("host missing after {}", Quoted(word)));
    }
    out.user = std::string(user);
  }
  const auto colons = std::count(text.begin(), text.end(), ':');
  if (text.starts_with('[')) {
    MUSTER_RETURN_IF_ERROR(ParseBracketed(text, out));
  } else if (colons >= 2) {
    MUSTER_RETURN_IF_ERROR(ParseIpv6(text).status());
    out.hosts.emplace_back(text);
  } else {
    const size_t colon = text.find(':');
    MUSTER_RETURN_IF_ERROR(Expand(text.substr(0, colon), room, out));
    if (colon != std::string_view::npos) out.suffix = std::string(text.substr(colon + 1));
  }
  if (out.hosts.size() > room) {
    return absl::InvalidArgumentError(fmt::format("more than {} hosts", kMaxHosts));
  }
  return out;
}

std::string HostKey(std::string_view host) {
  if (host.find(':') != std::string_view::npos || MustBeIpv4(host)) {
    if (const auto address = ParseAddress(host); address.ok()) return address->Key();
  }
  return "n:" + NameKey(host);
}

bool IsLoopbackHost(std::string_view host) {
  if (host.find(':') != std::string_view::npos || MustBeIpv4(host)) {
    const auto address = ParseAddress(host);
    return address.ok() && address->IsLoopback();
  }
  return IsLoopbackName(host);
}

}  // namespace muster::hostfile
