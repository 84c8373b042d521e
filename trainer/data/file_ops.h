#pragma once

#include <cstddef>
#include <string>

// What several writers of files need. Each throws DataError with the path and the reason.

namespace muster::data {

// Writes all of it at the file position.
void WriteAll(int fd, const void* data, size_t size, const std::string& path);

// Whether `fd` is still what `path` names: another process may have removed or renamed it. Asked
// after a lock was taken, which else may be one on a file that nobody else will find.
bool IsStill(int fd, const std::string& path);

// Makes the names in the folder of `path` durable: those of files that were created, renamed or
// removed there.
void SyncFolderOf(const std::string& path);

}  // namespace muster::data
