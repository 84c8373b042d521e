#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/hostfile/host_word.h"
#include "controller/hostfile/hostfile.h"
#include "muster/v1/job.pb.h"

// Rules over several hosts: duplicates while reading, the rest at the end. Shared by files and
// --host lists, which differ only in what they call a line.

namespace muster::hostfile {

// The hosts read so far.
class HostSet {
 public:
  // `unit`: "line" or "item", for messages.
  explicit HostSet(std::string_view unit) : unit_(unit) {}

  // Adds the hosts of `word` with the options of `options`, all or none: an error when one is there
  // already, by name, by address, or by addr=.
  std::optional<Error> Add(uint32_t line, const HostWord& word, const v1::Host& options);

  // How many more hosts fit.
  size_t Room() const { return kMaxHosts - static_cast<size_t>(inventory_.hosts_size()); }

  // The rules for the whole: loopback hosts only among themselves, and at least one host that is no
  // spare.
  std::vector<Error> CheckWhole() const;

  v1::Inventory Take() && { return std::move(inventory_); }

 private:
  struct Owner {
    int host = 0;          // index in inventory_
    bool by_addr = false;  // addr= of that host, not its name
  };

  std::optional<Error> Claim(const std::string& key, std::string_view text, bool by_addr);
  Error Duplicate(std::string_view text, bool by_addr, const Owner& owner) const;

  std::string_view unit_;
  v1::Inventory inventory_;
  std::map<std::string, Owner> owners_;
};

}  // namespace muster::hostfile
