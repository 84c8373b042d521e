#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Slurm's hostlists: `r[1-2]n[01-02,10]-ib` -> r1n01-ib r1n02-ib r1n10-ib r2n01-ib ...

namespace muster::hostfile {

// A parsed list, not yet expanded: so that its size is known before any memory is spent on it.
class Hostlist {
 public:
  // A text without brackets is a list of one. InvalidArgument says what is wrong inside the
  // brackets.
  static absl::StatusOr<Hostlist> Parse(std::string_view text);

  // Number of hosts; stops counting at UINT32_MAX.
  uint64_t Count() const;

  // The i-th host, 0 <= i < Count(); the leftmost group varies slowest.
  std::string At(uint64_t i) const;

  // True if the text had brackets.
  bool HasGroups() const { return !groups_.empty(); }

 private:
  struct Item {
    uint32_t first = 0;
    uint32_t last = 0;
    size_t width = 0;  // zero-padded to this many digits
  };
  struct Group {
    std::string prefix;  // literal text before the brackets
    std::vector<Item> items;
    uint64_t count = 0;
  };

  static absl::StatusOr<Item> ParseItem(std::string_view text);

  std::vector<Group> groups_;
  std::string rest_;  // literal text after the last group
};

}  // namespace muster::hostfile
