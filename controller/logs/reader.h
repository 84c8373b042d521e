#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/logs/growth.h"
#include "controller/logs/stream_cursor.h"
#include "muster/v1/control.pb.h"

namespace muster::logs {

// Reads the streams of one attempt as one, in the order in which their lines were written. Memory
// is bounded (about 8 MiB) whatever the number of streams and the length of lines; the writer never
// waits for it. One thread.
class Reader {
 public:
  using TimePoint = StreamCursor::TimePoint;

  // Those streams of `plan` that the request's ranks, coordinates, hosts and streams let through.
  // InvalidArgument: the request names a rank, coordinate or host that the job has not.
  static absl::StatusOr<std::unique_ptr<Reader>> Make(const std::string& output_dir,
                                                      uint32_t attempt, const v1::Plan& plan,
                                                      const v1::LogsRequest& request);

  // Takes the sizes of an attempt that is being written.
  absl::Status Extend(const Growth& growth);
  // Takes the sizes of the files; `ended`: they will not grow any more, so unfinished last lines
  // are given out too.
  absl::Status ExtendFromFiles(bool ended);

  // The next run of lines, or nothing until sizes grow or time passes (an unfinished line).
  absl::StatusOr<std::optional<v1::LogsResponse>> Next(TimePoint now);

 private:
  struct Source {
    size_t growth_index;
    std::string path;
    StreamCursor cursor;
    bool queued = false;
  };
  struct Entry {
    int64_t key;
    size_t source;
    bool operator>(const Entry& other) const {
      return key != other.key ? key > other.key : source > other.source;
    }
  };

  Reader() = default;
  absl::Status SeekOnce();
  absl::Status Refill(TimePoint now);
  absl::Status Queue(size_t source, TimePoint now);

  std::vector<Source> sources_;
  std::optional<uint64_t> tail_lines_;
  std::optional<int64_t> since_ns_;
  std::vector<Entry> heap_;  // those that are Ready, earliest line on top
  bool extended_ = false;    // streams that were not Ready may be now
};

}  // namespace muster::logs
