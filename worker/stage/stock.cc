#include "worker/stage/stock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <utility>

#include "common/read_at.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "worker/stage/files.h"

namespace muster::stage {
namespace {

absl::Status Stopped() {
  return absl::CancelledError("the transfer was ended");
}

uint32_t NumPieces(const v1::TreeEntry& entry) {
  return static_cast<uint32_t>(PiecesOf(entry.size()));
}

void Count(const Tree& tree, uint32_t piece, Stock& stock, const StockOptions& options) {
  stock.pieces[piece] = true;
  stock.bytes += tree.Locate(piece).size;
  if (options.progress) options.progress(stock.bytes);
}

// Whether all pieces of the file in the version's folder are what they should be.
bool ContentIsGood(const Tree& tree, const std::string& path, size_t entry, const Stock& stock,
                   const StockOptions& options) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return false;
  for (uint32_t i = 0; i < NumPieces(tree.entry(entry)); ++i) {
    if (*options.stop) return false;
    const uint32_t piece = tree.FirstPiece(entry) + i;
    const PiecePlace place = tree.Locate(piece);
    const auto bytes = ReadAt(fd.get(), place.offset, place.size, path);
    if (!bytes.ok() || !Matches(tree, piece, *bytes)) return false;
    if (options.progress) options.progress(stock.bytes);
  }
  return true;
}

// Files of other versions by content; sums alone tell it.
using Known = std::map<std::string, std::string>;

Known KnownFiles(const std::vector<std::string>& versions) {
  Known known;
  for (const std::string& version : versions) {
    const auto bytes = ReadFile(version + ".manifest", kMaxManifestBytes);
    if (!bytes.ok()) continue;
    const auto tree = Tree::Parse(*bytes);
    if (!tree.ok()) continue;
    for (const v1::TreeEntry& entry : tree->manifest().entries()) {
      if (entry.size() > 0) known.emplace(entry.sums(), version + "/" + entry.path());
    }
  }
  return known;
}

// Adds the missing pieces of an entry that the file at `path` has. `in_place`: it is where the
// tree's own file will be, so nothing is to be copied.
absl::Status TakeFrom(const std::string& path, bool in_place, const Tree& tree, size_t entry,
                      TreeFiles& files, const StockOptions& options, Stock& stock) {
  // What stands there may be anything: a pipe that nobody writes to must not be waited for.
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info;
  if (!fd || fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return absl::OkStatus();
  for (uint32_t i = 0; i < NumPieces(tree.entry(entry)); ++i) {
    if (*options.stop) return Stopped();
    const uint32_t piece = tree.FirstPiece(entry) + i;
    const PiecePlace place = tree.Locate(piece);
    if (stock.pieces[piece]) continue;
    if (place.offset + place.size > static_cast<uint64_t>(info.st_size)) break;
    const auto bytes = ReadAt(fd.get(), place.offset, place.size, path);
    if (!bytes.ok() || !Matches(tree, piece, *bytes)) continue;
    if (!in_place && options.changes) MUSTER_RETURN_IF_ERROR(files.Write(piece, *bytes));
    Count(tree, piece, stock, options);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status LookAtVersion(const Tree& tree, TreeFiles& files, const StockOptions& options,
                           Stock& stock) {
  stock.pieces.assign(tree.num_pieces(), false);
  if (!files.has_version()) return absl::OkStatus();
  for (size_t i = 0; i < tree.num_entries(); ++i) {
    if (*options.stop) return Stopped();
    const v1::TreeEntry& entry = tree.entry(i);
    std::string fault = files.LookAt(i);
    const bool file = entry.kind() == v1::TREE_KIND_FILE;
    if (file && fault.empty() && options.verify &&
        !ContentIsGood(tree, files.VersionPath(i), i, stock, options)) {
      fault = "other content";
    }
    if (!fault.empty()) stock.damaged.push_back(entry.path() + ": " + fault);
    if (!file || !fault.empty()) continue;
    files.MarkGood(i);
    for (uint32_t p = 0; p < NumPieces(entry); ++p)
      Count(tree, tree.FirstPiece(i) + p, stock, options);
  }
  return *options.stop ? Stopped() : absl::OkStatus();
}

absl::Status CollectPieces(const Tree& tree, TreeFiles& files, const StockOptions& options,
                           Stock& stock) {
  std::optional<Known> known;
  for (size_t i = 0; i < tree.num_entries(); ++i) {
    const v1::TreeEntry& entry = tree.entry(i);
    if (entry.kind() != v1::TREE_KIND_FILE || entry.size() == 0 || files.IsGood(i)) continue;
    MUSTER_RETURN_IF_ERROR(TakeFrom(files.PartialPath(i), true, tree, i, files, options, stock));
    if (files.has_version()) {
      MUSTER_RETURN_IF_ERROR(TakeFrom(files.VersionPath(i), false, tree, i, files, options, stock));
    }
    if (!known) known = KnownFiles(options.other_versions);
    const auto same = known->find(entry.sums());
    if (same != known->end())
      MUSTER_RETURN_IF_ERROR(TakeFrom(same->second, false, tree, i, files, options, stock));
  }
  return absl::OkStatus();
}

}  // namespace muster::stage
