#include "controller/hostfile/hostlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "common/status.h"
#include "controller/hostfile/text.h"

namespace muster::hostfile {
namespace {

constexpr uint64_t kMaxCount = std::numeric_limits<uint32_t>::max();

bool IsPadded(std::string_view number) {
  return number.size() > 1 && number[0] == '0';
}

absl::Status BadItem(std::string_view item, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("bad list item {}: {}", Quoted(item), why));
}

absl::Status CheckNumber(std::string_view item, std::string_view number) {
  if (!IsDigits(number)) {
    return BadItem(item, "items are N or LO-HI in decimal digits, as in [01-04,10]");
  }
  if (number.size() > 9) return BadItem(item, "more than 9 digits");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Hostlist::Item> Hostlist::ParseItem(std::string_view text) {
  if (text.empty()) return absl::InvalidArgumentError("empty item in a [...] list");
  const size_t dash = text.find('-');
  const std::string_view low = text.substr(0, dash);
  MUSTER_RETURN_IF_ERROR(CheckNumber(text, low));
  Item item;
  item.first = item.last = *ParseDecimal(low);
  item.width = IsPadded(low) ? low.size() : 0;
  if (dash == std::string_view::npos) return item;

  const std::string_view high = text.substr(dash + 1);
  MUSTER_RETURN_IF_ERROR(CheckNumber(text, high));
  item.last = *ParseDecimal(high);
  if (IsPadded(low) && high.size() < low.size()) {
    return BadItem(text, fmt::format("{} has fewer digits than {}", high, low));
  }
  if (IsPadded(high) && !IsPadded(low)) {
    return BadItem(text, fmt::format("{} has a leading zero and {} has none", high, low));
  }
  if (item.last < item.first) return BadItem(text, "ranges must ascend");
  return item;
}

absl::StatusOr<Hostlist> Hostlist::Parse(std::string_view text) {
  Hostlist list;
  std::string_view rest = text;
  while (true) {
    const size_t open = rest.find('[');
    const std::string_view literal = rest.substr(0, open);
    if (literal.find(']') != std::string_view::npos) {
      return absl::InvalidArgumentError(fmt::format("']' without '[' in {}", Quoted(text)));
    }
    if (open == std::string_view::npos) {
      list.rest_ = literal;
      return list;
    }
    rest.remove_prefix(open + 1);
    const size_t close = rest.find(']');
    if (close == std::string_view::npos) {
      return absl::InvalidArgumentError(fmt::format("'[' without ']' in {}", Quoted(text)));
    }
    std::string_view inside = rest.substr(0, close);
    if (inside.find('[') != std::string_view::npos) {
      return absl::InvalidArgumentError(fmt::format("'[' inside '[...]' in {}", Quoted(text)));
    }
    rest.remove_prefix(close + 1);

    Group group;
    group.prefix = literal;
    while (true) {
      const size_t comma = inside.find(',');
      MUSTER_ASSIGN_OR_RETURN(const Item item, ParseItem(inside.substr(0, comma)));
      group.items.push_back(item);
      group.count += uint64_t{item.last} - item.first + 1;
      if (comma == std::string_view::npos) break;
      inside.remove_prefix(comma + 1);
    }
    list.groups_.push_back(std::move(group));
  }
}

uint64_t Hostlist::Count() const {
  uint64_t count = 1;
  for (const Group& group : groups_) {
    // Both factors fit in 43 bits at most: a line holds fewer than 2^11 items of at most 2^30
    // numbers.
    count = std::min(kMaxCount, count * std::min(kMaxCount, group.count));
  }
  return count;
}

std::string Hostlist::At(uint64_t i) const {
  std::vector<uint64_t> index(groups_.size());
  for (size_t g = groups_.size(); g-- > 0;) {
    index[g] = i % groups_[g].count;
    i /= groups_[g].count;
  }
  std::string out;
  for (size_t g = 0; g < groups_.size(); ++g) {
    out += groups_[g].prefix;
    uint64_t offset = index[g];
    for (const Item& item : groups_[g].items) {
      const uint64_t size = uint64_t{item.last} - item.first + 1;
      if (offset < size) {
        out += fmt::format("{:0{}}", item.first + offset, std::max<size_t>(1, item.width));
        break;
      }
      offset -= size;
    }
  }
  return out + rest_;
}

}  // namespace muster::hostfile
