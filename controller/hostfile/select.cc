#include "controller/hostfile/select.h"

#include <absl/strings/str_join.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/suggest.h"
#include "controller/hostfile/host_word.h"
#include "controller/hostfile/hostfile.h"
#include "controller/hostfile/options.h"
#include "controller/hostfile/text.h"

namespace muster::hostfile {
namespace {

using Devices = std::vector<uint32_t>;
// Index in the inventory -> devices; empty = all of the host.
using Selection = std::map<int, Devices>;

absl::Status Wrong(const std::string& text) {
  return absl::InvalidArgumentError(text);
}

std::vector<std::string_view> SplitAt(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (size_t at = text.find(separator); at != std::string_view::npos; at = text.find(separator)) {
    out.push_back(text.substr(0, at));
    text.remove_prefix(at + 1);
  }
  out.push_back(text);
  return out;
}

std::string Name(const v1::Inventory& inventory) {
  return inventory.source().empty() ? "the hostfile" : inventory.source();
}

// "0-7", "3, 1".
std::string Listed(const v1::Host& host) {
  if (host.gpus_size() > 0) return absl::StrJoin(host.gpus(), ", ");
  return host.slots() == 1 ? "0" : fmt::format("0-{}", host.slots() - 1);
}

class Selector {
 public:
  explicit Selector(const v1::Inventory& inventory) : inventory_(inventory) {
    for (int i = 0; i < inventory.hosts_size(); ++i) {
      index_.emplace(HostKey(inventory.hosts(i).host()), i);
    }
  }

  absl::StatusOr<Selection> Select(std::string_view text) const {
    Selection out;
    const std::vector<std::string_view> words = SplitAt(text, '@');
    for (size_t i = 0; i < words.size(); ++i) {
      const std::string_view next = i + 1 < words.size() ? words[i + 1] : std::string_view();
      if (IsUserOf(words[i], next)) {
        if (Find(words[i]) >= 0) {
          return Wrong(
              fmt::format("'{0}@{1}' can be two things in {2}: the hosts {0} and {1}, or host {1} "
                          "of user {0}. Write {1} for the one host, or {1}@{0} for both",
                          words[i], next, Name(inventory_)));
        }
        ++i;
      }
      MUSTER_RETURN_IF_ERROR(
          AddWord(words[i], i + 1 < words.size() ? words[i + 1] : std::string_view(), out));
    }
    return out;
  }

 private:
  // The host of that name, or -1.
  int Find(std::string_view host) const {
    const auto it = index_.find(HostKey(host));
    return it == index_.end() ? -1 : it->second;
  }

  // True if all hosts of `next` have the user `word` in the hostfile.
  bool IsUserOf(std::string_view word, std::string_view next) const {
    if (word.empty() || next.empty()) return false;
    const absl::StatusOr<HostWord> hosts = ParseHostWord(next, kMaxHosts);
    return hosts.ok() && std::all_of(hosts->hosts.begin(), hosts->hosts.end(), [&](auto& host) {
             const int i = Find(host);
             return i >= 0 && inventory_.hosts(i).has_user() && inventory_.hosts(i).user() == word;
           });
  }

  absl::Status AddWord(std::string_view word, std::string_view next, Selection& out) const {
    if (word.empty()) return Wrong("a host is missing: write HOST[:0,2][@HOST...]");
    MUSTER_RETURN_IF_ERROR(CheckLineBytes(word));
    MUSTER_RETURN_IF_ERROR(CheckAscii(word));
    MUSTER_ASSIGN_OR_RETURN(const HostWord parsed, ParseHostWord(word, kMaxHosts));
    Devices devices;
    if (parsed.suffix) {
      if (parsed.suffix->empty()) {
        return Wrong(fmt::format("devices are missing after {}", Quoted(word)));
      }
      const std::string option = "gpus=" + *parsed.suffix;
      const std::array<std::string_view, 1> options = {option};
      const absl::StatusOr<v1::Host> host = ParseOptions(options, false, false);
      if (!host.ok()) {
        return Wrong(
            fmt::format("devices of {}: {}", Quoted(word), std::string(host.status().message())));
      }
      devices.assign(host->gpus().begin(), host->gpus().end());
    }
    for (const std::string& host : parsed.hosts) {
      const int i = Find(host);
      if (i < 0) return Unknown(host, next);
      MUSTER_RETURN_IF_ERROR(CheckDevices(inventory_.hosts(i), devices));
      if (!out.emplace(i, devices).second) {
        return Wrong(fmt::format("{0} is named twice: name it once, as in {0}:0,2", host));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Unknown(const std::string& host, std::string_view next) const {
    std::vector<std::string> known;
    for (const v1::Host& h : inventory_.hosts()) known.push_back(h.host());
    std::string text =
        fmt::format("'{}' is no host of {}{}", host, Name(inventory_), DidYouMean(host, known));
    // root@node01, where the hostfile does not speak of root.
    if (const int i = next.empty() ? -1 : Find(next.substr(0, next.find(':'))); i >= 0) {
      const v1::Host& h = inventory_.hosts(i);
      text += fmt::format(
          "; if it is the ssh user of {0}: its line ({1}:{2}) has {3}, so write {0}", h.host(),
          Name(inventory_), h.line(), h.has_user() ? "user " + h.user() : "no user");
    } else if (const size_t colon = host.rfind(':');
               colon != std::string::npos && Find(host.substr(0, colon)) >= 0) {
      text += fmt::format("; for devices of an IPv6 address write [{}]:{}", host.substr(0, colon),
                          host.substr(colon + 1));
    }
    return Wrong(text);
  }

  absl::Status CheckDevices(const v1::Host& host, const Devices& devices) const {
    if (host.gpus_size() == 0 && !host.has_slots()) return absl::OkStatus();
    for (const uint32_t device : devices) {
      const bool there = host.gpus_size() > 0 ? std::find(host.gpus().begin(), host.gpus().end(),
                                                          device) != host.gpus().end()
                                              : device < host.slots();
      if (there) continue;
      return Wrong(fmt::format("{} has no device {}: its line ({}:{}) gives it {}", host.host(),
                               device, Name(inventory_), host.line(), Listed(host)));
    }
    return absl::OkStatus();
  }

  const v1::Inventory& inventory_;
  std::map<std::string, int> index_;
};

void SetDevices(const Devices& devices, v1::Host& host) {
  host.mutable_gpus()->Assign(devices.begin(), devices.end());
  host.set_slots(static_cast<uint32_t>(devices.size()));
}

Devices DevicesOf(const v1::Host& host) {
  if (host.gpus_size() > 0) return {host.gpus().begin(), host.gpus().end()};
  Devices out(host.slots());
  std::iota(out.begin(), out.end(), 0U);
  return out;
}

void Replace(std::vector<v1::Host> hosts, v1::Inventory* inventory) {
  inventory->mutable_hosts()->Assign(hosts.begin(), hosts.end());
}

}  // namespace

absl::Status Include(std::string_view text, v1::Inventory* inventory) {
  MUSTER_ASSIGN_OR_RETURN(const Selection wanted, Selector(*inventory).Select(text));
  std::vector<v1::Host> hosts;
  for (int i = 0; i < inventory->hosts_size(); ++i) {
    const v1::Host& host = inventory->hosts(i);
    const auto it = wanted.find(i);
    if (it != wanted.end() && host.spare()) {
      return Wrong(
          fmt::format("{} is a spare and gets no ranks: take the word spare off its line ({}:{})",
                      host.host(), Name(*inventory), host.line()));
    }
    if (it == wanted.end() && !host.spare()) continue;
    hosts.push_back(host);
    if (it != wanted.end() && !it->second.empty()) SetDevices(it->second, hosts.back());
  }
  Replace(std::move(hosts), inventory);
  return absl::OkStatus();
}

absl::Status Exclude(std::string_view text, v1::Inventory* inventory) {
  MUSTER_ASSIGN_OR_RETURN(const Selection unwanted, Selector(*inventory).Select(text));
  std::vector<v1::Host> hosts;
  for (int i = 0; i < inventory->hosts_size(); ++i) {
    v1::Host host = inventory->hosts(i);
    if (const auto it = unwanted.find(i); it != unwanted.end()) {
      if (it->second.empty()) continue;
      if (!host.has_slots()) {
        return Wrong(
            fmt::format("the devices of {} are not known: write slots=N or gpus=... on its line "
                        "({}:{}), or leave the whole host out",
                        host.host(), Name(*inventory), host.line()));
      }
      Devices left;
      for (const uint32_t device : DevicesOf(host)) {
        const Devices& out = it->second;
        if (std::find(out.begin(), out.end(), device) == out.end()) left.push_back(device);
      }
      if (left.empty()) continue;
      SetDevices(left, host);
    }
    hosts.push_back(std::move(host));
  }
  if (std::all_of(hosts.begin(), hosts.end(), [](const v1::Host& host) { return host.spare(); })) {
    return Wrong(fmt::format("no host of {} is left", Name(*inventory)));
  }
  Replace(std::move(hosts), inventory);
  return absl::OkStatus();
}

}  // namespace muster::hostfile
