#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/sha256.h"
#include "common/tree.h"

// Any bytes are a manifest of a staged tree that keeps what Tree::Parse promises, or an error. What
// a good one says is written out and read again: the same tree.

namespace {

using namespace muster;  // NOLINT(google-build-using-namespace)

// Whether the path names something below the folder that it is appended to.
bool StaysBelow(const std::string& path) {
  const std::string framed = "/" + path + "/";
  return !path.empty() && path.size() <= kMaxTreePath && path.find('\0') == std::string::npos &&
         framed.find("//") == std::string::npos && framed.find("/./") == std::string::npos &&
         framed.find("/../") == std::string::npos;
}

void CheckEntries(const Tree& tree) {
  uint32_t files = 0;
  uint64_t bytes = 0;
  for (const v1::TreeEntry& entry : tree.manifest().entries()) {
    if (!StaysBelow(entry.path()) || entry.mode() > 0777) std::abort();
    if (entry.kind() == v1::TREE_KIND_FILE) ++files;
    bytes += entry.size();
  }
  if (files != tree.files() || bytes != tree.bytes()) std::abort();
}

void CheckPieces(const Tree& tree) {
  uint64_t bytes = 0;
  for (uint32_t piece = 0; piece < tree.num_pieces(); ++piece) {
    const PiecePlace place = tree.Locate(piece);
    if (place.entry >= tree.num_entries() || place.size == 0 || place.size > kPieceBytes) {
      std::abort();
    }
    if (place.offset + place.size > tree.entry(place.entry).size()) std::abort();
    if (tree.FirstPiece(place.entry) + place.offset / kPieceBytes != piece) std::abort();
    if (tree.Sum(piece).size() != kSha256Bytes) std::abort();
    bytes += place.size;
  }
  if (bytes != tree.bytes()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto tree = Tree::Parse(bytes);
  if (!IsContentId(Tree::ContentId(bytes))) std::abort();
  if (!tree.ok()) {
    if (tree.status().message().empty()) std::abort();
    return 0;
  }
  CheckEntries(*tree);
  CheckPieces(*tree);
  const auto again = Tree::Parse(tree->manifest().SerializeAsString());
  if (!again.ok() || again->num_pieces() != tree->num_pieces() || again->bytes() != tree->bytes()) {
    std::abort();
  }
  return 0;
}
