#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

// Errors of controller, worker and common: absl::Status. A message says what was attempted, on
// what, and why it failed: `open /var/tmp/x: Permission denied`. Nothing is both logged and
// returned.

namespace muster {

// The status for a failed system call: code by errno, message `context: strerror`.
absl::Status PosixError(std::string_view context, int error_number = errno);

// The same code with `context: ` before the message. OK stays OK.
absl::Status Annotate(const absl::Status& status, std::string_view context);

}  // namespace muster

#define MUSTER_CONCAT_INNER(a, b) a##b
#define MUSTER_CONCAT(a, b) MUSTER_CONCAT_INNER(a, b)

// Returns from the calling function unless `expr` is OK.
#define MUSTER_RETURN_IF_ERROR(expr)                                                    \
  do {                                                                                  \
    if (absl::Status muster_status = (expr); !muster_status.ok()) return muster_status; \
  } while (false)

// `MUSTER_ASSIGN_OR_RETURN(auto x, MakeX())`: x is the value, or the calling function returns the
// status.
#define MUSTER_ASSIGN_OR_RETURN(lhs, expr) \
  MUSTER_ASSIGN_OR_RETURN_INNER(MUSTER_CONCAT(muster_statusor_, __LINE__), lhs, expr)
#define MUSTER_ASSIGN_OR_RETURN_INNER(var, lhs, expr) \
  auto var = (expr);                                  \
  if (!var.ok()) return std::move(var).status();      \
  lhs = *std::move(var)
