#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

namespace muster {

// Bytes [offset, offset + size) of an open file; OutOfRange when it ends before. `path` is for the
// error. Blocking; any thread.
absl::StatusOr<std::string> ReadAt(int fd, uint64_t offset, uint64_t size, const std::string& path);

}  // namespace muster
