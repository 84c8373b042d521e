#include <fmt/format.h>

#include "common/status.h"
#include "controller/hostfile/host_set.h"
#include "controller/hostfile/host_word.h"
#include "controller/hostfile/hostfile.h"
#include "controller/hostfile/options.h"
#include "controller/hostfile/text.h"

namespace muster::hostfile {
namespace {

constexpr size_t kMaxErrors = 20;

// At commas outside brackets.
std::vector<std::string_view> SplitItems(std::string_view list) {
  std::vector<std::string_view> items;
  size_t start = 0;
  bool inside = false;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '[') inside = true;
    if (list[i] == ']') inside = false;
    if (list[i] == ',' && !inside) {
      items.push_back(list.substr(start, i - start));
      start = i + 1;
    }
  }
  items.push_back(list.substr(start));
  return items;
}

struct ParsedItem {
  HostWord word;
  v1::Host options;
};

absl::StatusOr<ParsedItem> ParseItem(std::string_view item, size_t room) {
  if (item.empty()) {
    return absl::InvalidArgumentError("empty item: write HOST[:SLOTS],HOST[:SLOTS],...");
  }
  if (item.find_first_of(" \t\n") != std::string_view::npos) {
    return absl::InvalidArgumentError(fmt::format(
        "blank in {}: write HOST[:SLOTS] items with commas; options belong in a hostfile",
        Quoted(item)));
  }
  MUSTER_RETURN_IF_ERROR(CheckLineBytes(item));
  MUSTER_RETURN_IF_ERROR(CheckAscii(item));
  ParsedItem out;
  MUSTER_ASSIGN_OR_RETURN(out.word, ParseHostWord(item, room));
  if (out.word.suffix) {
    MUSTER_ASSIGN_OR_RETURN(const uint32_t slots, ParseSlots("slots", *out.word.suffix));
    out.options.set_slots(slots);
  }
  return out;
}

}  // namespace

Result ParseHostList(std::string_view list) {
  Result result;
  HostSet hosts("item");
  uint32_t number = 0;
  for (const std::string_view item : SplitItems(list)) {
    if (result.errors.size() == kMaxErrors) return result;
    ++number;
    const absl::StatusOr<ParsedItem> parsed = ParseItem(item, hosts.Room());
    if (!parsed.ok()) {
      result.errors.push_back({number, std::string(parsed.status().message())});
    } else if (auto error = hosts.Add(number, parsed->word, parsed->options)) {
      result.errors.push_back(*std::move(error));
    }
  }
  if (result.ok()) result.errors = hosts.CheckWhole();
  if (result.ok()) {
    result.inventory = std::move(hosts).Take();
    result.inventory.set_source("--host");
  }
  return result;
}

}  // namespace muster::hostfile
