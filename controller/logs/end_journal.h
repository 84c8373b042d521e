#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/unique_fd.h"
#include "muster/v1/worker.pb.h"

namespace muster::logs {

// `ranks/attempt_<k>/streams.journal`: which streams of an attempt are whole, so that a restarted
// controller knows what it has promised. Lines of text:
//
//   end <rank> <stdout|stderr|events> <bytes>     all bytes are on disk and none follow
//   abandoned <node index>                        the node is gone; its streams stay as they are
//
// A last line without a newline was cut by a crash and does not count. One thread at a time.
class EndJournal {
 public:
  struct End {
    uint32_t rank = 0;
    v1::Stream stream = v1::STREAM_UNSPECIFIED;
    uint64_t bytes = 0;
  };
  struct Content {
    std::vector<End> ends;
    std::vector<uint32_t> abandoned;
  };

  explicit EndJournal(std::string path) : path_(std::move(path)) {}

  // What the file says now, for those who do not write it; NotFound: there is none.
  static absl::StatusOr<Content> Look(const std::string& path);

  // What a former process wrote; makes the file if there is none. Lines that say nothing known are
  // passed over.
  absl::StatusOr<Content> Recover();
  // Durable when they return OK. After an error the same call may be repeated.
  absl::Status Append(const std::vector<End>& ends);
  absl::Status AppendAbandoned(uint32_t node);

 private:
  absl::Status Write(const std::string& lines);

  const std::string path_;
  UniqueFd fd_;
  uint64_t size_ = 0;
};

}  // namespace muster::logs
