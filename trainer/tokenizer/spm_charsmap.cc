#include "trainer/tokenizer/spm_charsmap.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "trainer/tokenizer/tokenizer.h"

namespace muster::tokenizer {
namespace {

constexpr size_t kLabels = 256;

// A unit of a Darts-clone trie.
struct Unit {
  uint32_t bits;
  bool has_leaf() const { return (bits >> 8 & 1) != 0; }
  uint32_t value() const { return bits & 0x7fffffff; }
  uint32_t label() const { return bits & 0x800000ff; }
  size_t offset() const { return static_cast<size_t>(bits >> 10) << ((bits & 0x200) >> 6); }
};

}  // namespace

bool CheckCharsmap(std::string_view charsmap, size_t offset) {
  if (charsmap.empty()) return false;
  const auto fail = [offset](size_t at, const char* reason) {
    throw TokenizerError(fmt::format("offset {}: normalization table: {}", offset + at, reason));
  };
  uint32_t trie_bytes = 0;
  if (charsmap.size() < sizeof(trie_bytes)) fail(0, "cut off");
  std::memcpy(&trie_bytes, charsmap.data(), sizeof(trie_bytes));
  if (trie_bytes % sizeof(Unit) != 0 || trie_bytes >= charsmap.size() - sizeof(trie_bytes)) {
    fail(0, "the size of its trie does not fit");
  }
  const std::string_view texts = charsmap.substr(sizeof(trie_bytes) + trie_bytes);
  if (texts.back() != '\0') fail(charsmap.size() - 1, "its last text has no end");
  if (trie_bytes / sizeof(Unit) < kLabels) fail(0, "its trie is cut off");
  std::vector<Unit> units(trie_bytes / sizeof(Unit));
  std::memcpy(units.data(), charsmap.data() + sizeof(trie_bytes), trie_bytes);

  // Every unit that any text can lead to.
  std::vector<bool> seen(units.size());
  std::vector<size_t> open = {0};
  bool has_space = false;
  while (!open.empty()) {
    const size_t at = open.back();
    open.pop_back();
    if (seen[at]) continue;
    seen[at] = true;
    const size_t node = at ^ units[at].offset();
    if ((node | (kLabels - 1)) >= units.size()) {
      fail(sizeof(trie_bytes) + at * sizeof(Unit), "its trie leads out of the table");
    }
    if (units[at].has_leaf() && units[node].value() >= texts.size()) {
      fail(sizeof(trie_bytes) + node * sizeof(Unit), "a text outside of the table");
    }
    for (size_t label = 0; label < kLabels; ++label) {
      if (units[node ^ label].label() != label) continue;
      open.push_back(node ^ label);
      has_space |= label == ' ';
    }
  }
  return has_space;
}

}  // namespace muster::tokenizer
