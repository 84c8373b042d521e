#include "controller/hostfile/host_set.h"

#include <fmt/format.h>

#include <algorithm>

#include "controller/hostfile/host_name.h"

namespace muster::hostfile {

std::optional<Error> HostSet::Add(uint32_t line, const HostWord& word, const v1::Host& options) {
  const int before = inventory_.hosts_size();
  bool warn = false;
  std::optional<Error> error;
  for (const std::string& text : word.hosts) {
    v1::Host& host = *inventory_.add_hosts();
    host = options;
    host.set_host(text);
    host.set_line(line);
    if (word.user) host.set_user(*word.user);
    warn = warn || HasUnderscore(text);
    error = Claim(HostKey(text), text, false);
    if (!error && host.has_addr()) error = Claim(HostKey(host.addr()), host.addr(), true);
    if (error) break;
  }
  if (error) {
    inventory_.mutable_hosts()->DeleteSubrange(before, inventory_.hosts_size() - before);
    std::erase_if(owners_, [&](const auto& entry) { return entry.second.host >= before; });
    error->line = line;
  } else if (warn) {
    inventory_.add_warnings(line);
  }
  return error;
}

// For the last host of inventory_.
std::optional<Error> HostSet::Claim(const std::string& key, std::string_view text, bool by_addr) {
  const Owner mine{inventory_.hosts_size() - 1, by_addr};
  const auto [it, is_new] = owners_.emplace(key, mine);
  if (is_new || it->second.host == mine.host) return std::nullopt;
  return Duplicate(text, by_addr, it->second);
}

Error HostSet::Duplicate(std::string_view text, bool by_addr, const Owner& owner) const {
  const v1::Host& first = inventory_.hosts(owner.host);
  const v1::Host& second = inventory_.hosts(inventory_.hosts_size() - 1);
  Error error;
  error.other_line = first.line();
  if (by_addr || owner.by_addr) {
    error.message =
        fmt::format("address {} is already that of {} on {} {}: each host needs its own", text,
                    first.host(), unit_, first.line());
    return error;
  }
  error.message = fmt::format("duplicate host {}: {} is already on {} {}", text, first.host(),
                              unit_, first.line());
  if (first.has_slots() && second.has_slots()) {
    error.message +=
        fmt::format("; for more ranks there, write slots={} once",
                    std::min<uint64_t>(4096, uint64_t{first.slots()} + second.slots()));
  }
  return error;
}

std::vector<Error> HostSet::CheckWhole() const {
  const auto& hosts = inventory_.hosts();
  const auto loopback = [](const v1::Host& host) { return IsLoopbackHost(host.host()); };
  std::vector<Error> errors;
  const auto first_loopback = std::find_if(hosts.begin(), hosts.end(), loopback);
  const auto first_other = std::find_if_not(hosts.begin(), hosts.end(), loopback);
  if (first_loopback != hosts.end() && first_other != hosts.end()) {
    errors.push_back(
        {first_loopback->line(),
         fmt::format("{} is a loopback host and {} ({} {}) is not: on the other hosts "
                     "it would mean themselves; write this machine's address",
                     first_loopback->host(), first_other->host(), unit_, first_other->line())});
  }
  if (hosts.empty()) {
    errors.push_back({0, "no hosts: write one host a line, as in node01 slots=8"});
  } else if (std::all_of(hosts.begin(), hosts.end(), [](const auto& h) { return h.spare(); })) {
    errors.push_back({0, "only spare hosts: at least one host must not be a spare"});
  }
  return errors;
}

}  // namespace muster::hostfile
