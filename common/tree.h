#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/v1/stage.pb.h"

// A staged tree as both sides see it: its manifest, its content id, and the numbered pieces that
// travel (stage.proto). Pure; any thread.

namespace muster {

inline constexpr uint64_t kPieceBytes = uint64_t{512} << 10;
inline constexpr uint32_t kTreeFormat = 1;
// A piece number is a uint32; this bounds what a manifest may claim, and its memory.
inline constexpr uint64_t kMaxManifestBytes = uint64_t{256} << 20;
inline constexpr size_t kMaxTreePath = 4095;

// 64 lower-case hexadecimal digits.
bool IsContentId(std::string_view text);

// Where a node keeps the tree, below its state folder: "stage/0123456789abcdef01234567".
inline constexpr size_t kStageNameDigits = 24;
inline std::string StageFolder(std::string_view content_id) {
  return "stage/" + std::string(content_id.substr(0, kStageNameDigits));
}

// Pieces that `bytes` bytes take.
inline uint64_t PiecesOf(uint64_t bytes) {
  return bytes / kPieceBytes + (bytes % kPieceBytes != 0 ? 1 : 0);
}

// Where a piece of the content lies.
struct PiecePlace {
  size_t entry = 0;  // in the manifest
  uint64_t offset = 0;
  uint64_t size = 0;
};

// A manifest that has been checked: every path stays below the root, no entry lies below a file or
// a link, and sizes agree with sums. Immutable.
class Tree {
 public:
  // The content id of these bytes: 64 hexadecimal digits.
  static std::string ContentId(std::string_view manifest_bytes);

  // What is said of a manifest larger than kMaxManifestBytes.
  static absl::Status TooLarge(uint64_t manifest_bytes);

  // DataLoss or InvalidArgument names the path and what is wrong with it. For any bytes.
  static absl::StatusOr<Tree> Parse(std::string_view manifest_bytes);

  const v1::TreeManifest& manifest() const { return manifest_; }
  const v1::TreeEntry& entry(size_t index) const {
    return manifest_.entries(static_cast<int>(index));
  }
  size_t num_entries() const { return static_cast<size_t>(manifest_.entries_size()); }
  uint64_t bytes() const { return bytes_; }
  uint32_t files() const { return files_; }

  // Pieces of the content, numbered from 0.
  uint32_t num_pieces() const { return num_pieces_; }
  PiecePlace Locate(uint32_t piece) const;
  // The first piece of an entry; those of a file follow each other.
  uint32_t FirstPiece(size_t entry) const { return first_piece_[entry]; }
  // The SHA-256 that the piece must have.
  std::string_view Sum(uint32_t piece) const;

 private:
  absl::Status Check();

  v1::TreeManifest manifest_;
  std::vector<uint32_t> first_piece_;  // by entry
  uint32_t num_pieces_ = 0;
  uint64_t bytes_ = 0;
  uint32_t files_ = 0;
};

}  // namespace muster
