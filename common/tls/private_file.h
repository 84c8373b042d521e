#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

// Files of keys and certificates. Blocking; any thread.

namespace muster::tls {

// A whole file of at most 1 MiB that belongs to this user or root, is no link, and that nobody but
// its owner can write; with `secret`, nor read. NotFound: no such file. FailedPrecondition names
// the file, what is wrong and the command that mends it.
absl::StatusOr<std::string> ReadOwnFile(const std::string& path, bool secret);

// Replaces a file at once (a reader sees the old or the new content, and after a crash one of the
// two), with mode 0600. If root writes into another user's folder, the file becomes that user's.
absl::Status WriteOwnFile(const std::string& path, std::string_view content);

// Makes a folder (parents too) with mode 0700; if it is there: owned by this user, or this user is
// root, and not writable by others.
absl::Status MakeOwnFolder(const std::string& path);

}  // namespace muster::tls
