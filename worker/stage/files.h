#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

#include "common/unique_fd.h"

// Small file operations of staging. Blocking; errors name the path.

namespace muster::stage {

// The whole file; NotFound when there is none, OutOfRange beyond `most` bytes.
absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t most);
// Whole or not at all, durable.
absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes);

absl::Status WriteAt(int fd, uint64_t offset, std::string_view bytes, const std::string& path);

bool Exists(const std::string& path);
inline int64_t Nanoseconds(const timespec& time) {
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

// Bytes of a plain file; 0 when there is none.
uint64_t ReadableSize(const std::string& path);

// mkdir -p with mode 0700.
absl::Status MakeFolders(const std::string& path);
// rm -rf that also gets into folders without write permission. Never follows a link.
absl::Status RemoveTree(const std::string& path);

// A file locked until the descriptor is closed; Unavailable while another process has it.
absl::StatusOr<UniqueFd> LockFile(const std::string& path);

// Bytes that an unprivileged user may still write there.
absl::StatusOr<uint64_t> FreeBytes(const std::string& path);

}  // namespace muster::stage
