#include "common/read_at.h"

#include <unistd.h>

#include "common/status.h"

namespace muster {

absl::StatusOr<std::string> ReadAt(int fd, uint64_t offset, uint64_t size,
                                   const std::string& path) {
  std::string bytes(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t n =
        pread(fd, bytes.data() + done, size - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return PosixError("read " + path);
    if (n == 0) return absl::OutOfRangeError("read " + path + ": it has become shorter");
    done += static_cast<size_t>(n);
  }
  return bytes;
}

}  // namespace muster
