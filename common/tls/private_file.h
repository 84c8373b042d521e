#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <string>
#include <string_view>

// Files of keys and certificates. Blocking; any thread.

namespace muster::tls {

// A whole file of at most 1 MiB that belongs to this user, root or the user `also`, is no link, and
// that nobody but its owner can write; with `secret`, nor read. NotFound: no such file.
// FailedPrecondition names the file, what is wrong and the command that mends it.
absl::StatusOr<std::string> ReadOwnFile(const std::string& path, bool secret, uid_t also = 0);

// Replaces a file at once (a reader sees the old or the new content, and after a crash one of the
// two), with mode 0600. If root writes into another user's folder, the file becomes that user's,
// whatever that user does to the folder meanwhile: nothing outside of it is touched.
absl::Status WriteOwnFile(const std::string& path, std::string_view content);

// Makes a folder (parents too) with mode 0700; if it is there: owned by this user, or this user is
// root, and not writable by others. If root makes it in another user's folder, it becomes that
// user's. Whose it is.
absl::StatusOr<uid_t> MakeOwnFolder(const std::string& path);

}  // namespace muster::tls
