#include "common/status.h"

#include <cstring>

namespace muster {

absl::Status PosixError(std::string_view context, int error_number) {
  // strerror_r is the GNU form here: it returns the text and needs no locale.
  char buffer[128];
  const char* text = strerror_r(error_number, buffer, sizeof buffer);
  return absl::Status(absl::ErrnoToStatusCode(error_number), std::string(context) + ": " + text);
}

absl::Status Annotate(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), std::string(context) + ": " + std::string(status.message()));
}

}  // namespace muster
