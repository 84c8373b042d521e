#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "common/unique_fd.h"

// Files that are whole or absent after a crash: written under another name, flushed to the disk,
// then renamed. All functions throw CheckpointError naming the path and the system's reason.

namespace muster::checkpoint {

// A new file being written. Nothing is promised before Finish(). One thread.
class DurableFile {
 public:
  // Creates or truncates `path`.
  explicit DurableFile(std::filesystem::path path);
  void Write(const void* data, size_t size);
  // Flushes to the disk and closes.
  void Finish();

  uint64_t bytes() const { return bytes_; }
  uint32_t crc32c() const { return crc_; }

 private:
  std::filesystem::path path_;
  UniqueFd fd_;
  uint64_t bytes_ = 0;
  uint32_t crc_ = 0;
};

// Makes the names in `folder` durable.
void SyncFolder(const std::filesystem::path& folder);
// Renames and makes the new name durable.
void DurableRename(const std::filesystem::path& from, const std::filesystem::path& to);
// Replaces `path` by a file with `text`, at once or not at all.
void ReplaceFile(const std::filesystem::path& path, const std::string& text);
// Creates the folder and its parents.
void MakeFolder(const std::filesystem::path& folder);
std::string ReadText(const std::filesystem::path& path);

}  // namespace muster::checkpoint
