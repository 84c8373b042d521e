#pragma once

#include <cstdint>
#include <string>

#include "common/clock.h"
#include "common/unique_fd.h"

namespace muster::shim {

// Writes the `.times` file beside a log (common/times_format.h), at most one record a millisecond:
// finer times would cost more than they tell, and so a flood of short lines stays below 2 % of
// extra bytes. Shim's only thread.
class TimesLog {
 public:
  // Makes the file (mode 0600) with its header, or goes on with one that a former shim of this rank
  // began. Empty path: none is kept, and all calls do nothing.
  TimesLog(const std::string& path, const Clock& clock);

  // Bytes from `offset` of the log on come now.
  void Note(uint64_t offset);
  // The log's bytes below `offset` are gone: gives the space of their times back.
  void FreeBelow(uint64_t offset);

  // The first failure, after which no more times are kept: "write stdout.times: No space left on
  // device".
  const std::string& error() const { return error_; }

 private:
  void Fail(const char* what);

  const Clock& clock_;
  const std::string path_;
  UniqueFd fd_;
  uint64_t records_ = 0;
  uint64_t freed_ = 0;  // records
  int64_t last_ns_ = INT64_MIN;
  std::string error_;
};

}  // namespace muster::shim
