#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "controller/cli/render.h"
#include "muster/v1/control.pb.h"

namespace muster::cli {

// Many ranks' output as one readable view: every line begins with its global rank in a fixed width,
// `[ 3] ` for stdout and `[ 3]! ` for stderr, and lines of different ranks are never mixed. The
// text is escaped (EscapeForDisplay).
//  * A line that is still being written is shown after a short while; when it is finished it is one
//  line with one tag.
//    If another line had to come between, the finished line is shown whole again.
//  * A line redrawn with CR (progress bars) shows its newest state.
//  * A line longer than 64 KiB is shown in pieces, so memory stays bounded whatever a rank writes.
//  * Bytes that were shown before (a resumed connection sends them again) are skipped by their
//  offset.
//  * With times, each line begins with the moment at which the rank began to write it.
//  * Each attempt after the first is announced by a line of its own.
// Not thread-safe.
class LogView {
 public:
  using Clock = std::chrono::steady_clock;
  using Write = std::function<void(std::string_view)>;

  // `world` gives the width of the tags. `write` takes finished text.
  LogView(uint32_t world, Style style, Write write, bool times = false);

  void Append(const v1::LogsResponse& chunk, Clock::time_point now);
  // Shows half lines that have waited long enough. Call a few times a second.
  void Tick(Clock::time_point now);
  // A line of Muster's own between the ranks' lines, without the newline.
  void Message(std::string_view line);
  // Ends every half line: nothing more will come.
  void Finish();
  // Ends the line under the cursor, so that another can begin.
  void CloseOpen();

 private:
  using Key = std::pair<uint32_t, int>;  // rank, stream
  struct Half {
    std::string bytes;                         // since the last newline
    std::optional<uint64_t> next_offset;       // of the stream
    int64_t time_ns = 0;                       // when bytes[0] was written
    std::optional<Clock::time_point> unshown;  // since when there are bytes that were not shown
  };

  std::string Tag(const Key& key) const;
  void BeginAttempt(uint32_t attempt);
  // Writes the line of `key`, going on where it stands on the screen already.
  void Show(const Key& key, std::string_view line, bool finished);

  const int width_;
  const Style style_;
  const Write write_;
  const bool times_;
  std::optional<uint32_t> attempt_;  // of the last chunk
  std::map<Key, Half> halves_;
  std::optional<Key> open_;  // whose half line is under the cursor
  std::string open_text_;    // what of it is shown, after the tag
  Clock::time_point opened_{};
};

}  // namespace muster::cli
