#include "common/tree.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <limits>
#include <set>

#include "common/sha256.h"
#include "common/status.h"

namespace muster {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// Why the path must not be used; empty when it may.
std::string PathFault(const std::string& path) {
  if (path.empty()) return "an empty path";
  if (path.size() > kMaxTreePath) return "a path that is too long";
  if (path.find('\0') != std::string::npos) return "a path with a zero byte";
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    if (part.empty() || part == "." || part == "..") return "a path that leaves the tree";
  }
  return "";
}

std::string EntryFault(const v1::TreeEntry& entry) {
  const bool file = entry.kind() == v1::TREE_KIND_FILE;
  const bool link = entry.kind() == v1::TREE_KIND_SYMLINK;
  if (!file && !link && entry.kind() != v1::TREE_KIND_FOLDER) return "an unknown kind";
  if ((entry.mode() & ~uint32_t{0777}) != 0) return "a mode beyond 0777";
  if (link == entry.target().empty()) return "a target that does not fit its kind";
  if (entry.target().size() > kMaxTreePath || entry.target().find('\0') != std::string::npos) {
    return "a link target that is too long or has a zero byte";
  }
  const uint64_t pieces = file ? PiecesOf(entry.size()) : 0;
  if ((!file && entry.size() != 0) || entry.sums().size() != pieces * kSha256Bytes) {
    return "sums that do not fit its size";
  }
  return "";
}

}  // namespace

bool IsContentId(std::string_view text) {
  return text.size() == 2 * kSha256Bytes &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string Tree::ContentId(std::string_view manifest_bytes) {
  return ToHex(Sha256(manifest_bytes));
}

absl::Status Tree::TooLarge(uint64_t manifest_bytes) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the list of its files takes ", manifest_bytes / kMiB + (manifest_bytes % kMiB != 0 ? 1 : 0),
      " MiB, at most ", kMaxManifestBytes / kMiB,
      " are possible: stage parts of the tree, or leave files out in .musterignore"));
}

absl::StatusOr<Tree> Tree::Parse(std::string_view manifest_bytes) {
  Tree tree;
  if (manifest_bytes.size() > kMaxManifestBytes) return TooLarge(manifest_bytes.size());
  if (!tree.manifest_.ParseFromArray(manifest_bytes.data(),
                                     static_cast<int>(manifest_bytes.size()))) {
    return absl::DataLossError("the manifest of the tree is damaged");
  }
  MUSTER_RETURN_IF_ERROR(tree.Check());
  return tree;
}

absl::Status Tree::Check() {
  if (manifest_.format() != kTreeFormat) {
    return absl::InvalidArgumentError(absl::StrCat("a tree of format ", manifest_.format(),
                                                   "; this version knows ", kTreeFormat));
  }
  std::set<std::string_view> folders = {""};
  const std::string* last = nullptr;
  uint64_t pieces = 0;
  for (const v1::TreeEntry& entry : manifest_.entries()) {
    const std::string& path = entry.path();
    std::string fault = PathFault(path);
    if (fault.empty()) fault = EntryFault(entry);
    if (fault.empty() && last != nullptr && path <= *last) fault = "a path out of order";
    const size_t slash = path.rfind('/');
    const std::string_view parent =
        slash == std::string::npos ? std::string_view() : std::string_view(path).substr(0, slash);
    if (fault.empty() && !folders.contains(parent)) fault = "a path whose folder is none";
    if (!fault.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("the manifest has ", fault, ": ", path));
    }
    if (entry.kind() == v1::TREE_KIND_FOLDER) folders.insert(path);
    if (entry.kind() == v1::TREE_KIND_FILE) ++files_;
    first_piece_.push_back(static_cast<uint32_t>(pieces));
    pieces += entry.sums().size() / kSha256Bytes;
    bytes_ += entry.size();
    last = &path;
  }
  // Room is left for the pieces of the manifest itself.
  if (pieces > std::numeric_limits<uint32_t>::max() / 2) {
    return absl::InvalidArgumentError("the tree is too large");
  }
  num_pieces_ = static_cast<uint32_t>(pieces);
  return absl::OkStatus();
}

PiecePlace Tree::Locate(uint32_t piece) const {
  // The last entry that begins at or before it; entries without pieces begin where the next does.
  const auto after = std::upper_bound(first_piece_.begin(), first_piece_.end(), piece);
  const auto index = static_cast<size_t>(after - first_piece_.begin()) - 1;
  const uint64_t offset = uint64_t{piece - first_piece_[index]} * kPieceBytes;
  return {index, offset, std::min(kPieceBytes, entry(index).size() - offset)};
}

std::string_view Tree::Sum(uint32_t piece) const {
  const PiecePlace place = Locate(piece);
  return std::string_view(entry(place.entry).sums())
      .substr(place.offset / kPieceBytes * kSha256Bytes, kSha256Bytes);
}

}  // namespace muster
