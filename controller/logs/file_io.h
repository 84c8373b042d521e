#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "common/unique_fd.h"

// Whole reads and writes at an offset, over the system calls that may do less. Any thread.

namespace muster::logs {

// Writes from `offset` on. `written` tells how much reached the file, also on an error.
absl::Status WriteAt(int fd, uint64_t offset, std::string_view data, const std::string& path,
                     size_t& written);

// Reads up to `size` bytes; fewer only at the end of the file.
absl::StatusOr<std::string> ReadAt(int fd, uint64_t offset, size_t size, const std::string& path);
// The same into `buffer`; the number of bytes read.
absl::StatusOr<size_t> ReadInto(int fd, uint64_t offset, char* buffer, size_t size,
                                const std::string& path);

absl::StatusOr<uint64_t> FileSize(int fd, const std::string& path);

// Opens without following a link in the last component; new files get mode 0644 under the umask.
absl::StatusOr<UniqueFd> OpenFile(const std::string& path, int flags);

// Makes `path` and the folders above it that are missing.
absl::Status MakeDirs(const std::string& path);

// Makes the entries of a folder durable.
absl::Status SyncDir(const std::string& path);

}  // namespace muster::logs
