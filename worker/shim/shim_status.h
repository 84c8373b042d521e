#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// What a shim knows about its rank. One value, two uses: the message to the daemon on each change,
// and, once the rank has ended, the exit record on disk (docs/formats.md, "Exit record").

namespace muster::shim {

enum class ShimState : uint32_t {
  kPrepared = 1,  // waits for kStart
  kRunning = 2,
  kExited = 3,  // the rank was waited for
  kFailed = 4,  // could not be started; `error` says why
};

inline constexpr size_t kNumStreams = 3;  // stdout, stderr, events

struct StreamStatus {
  uint64_t size = 0;  // bytes in the log file
  uint64_t lost = 0;  // bytes drained from the pipe that could not be written
  bool eof = false;   // every writer has closed it, or the shim has stopped reading

  friend bool operator==(const StreamStatus&, const StreamStatus&) = default;
};

struct ShimStatus {
  ShimState state = ShimState::kPrepared;
  int32_t shim_pid = 0;
  uint64_t shim_start_ticks = 0;
  int32_t rank_pid = 0;
  uint64_t rank_start_ticks = 0;
  int64_t started_ns = 0;  // CLOCK_REALTIME
  bool stopped = false;    // in state T
  bool in_cgroup = false;  // the rank joined RankSpec::cgroup_procs
  // With kExited; kFailed has code 126 or 127, as shells give.
  int32_t exit_code = 0;  // 0..255, or 128 + signal
  int32_t signal = 0;
  bool core_dumped = false;
  int64_t ended_ns = 0;    // CLOCK_REALTIME at the wait
  bool term_sent = false;  // kTerminate was obeyed before the rank ended
  bool kill_sent = false;  // kKill was obeyed before the rank ended
  std::string error;
  std::string lost_error;  // why bytes were lost: "write stdout.log: No space left on device"
  std::array<StreamStatus, kNumStreams> streams;
  bool log_waits = false;  // a log's quota has been full for a while: the rank waits in its write()
  // With kExited or kFailed: the shim, a subreaper, has no child any more, so nothing that the rank
  // ever started lives.
  bool childless = false;

  bool Ended() const { return state == ShimState::kExited || state == ShimState::kFailed; }
  // The rank has ended and no stream will grow any more.
  bool Drained() const { return Ended() && streams[0].eof && streams[1].eof && streams[2].eof; }

  friend bool operator==(const ShimStatus&, const ShimStatus&) = default;
};

std::string EncodeShimStatus(const ShimStatus& status);
// Nothing, and the reason in `error`, for anything else than what EncodeShimStatus wrote.
std::optional<ShimStatus> DecodeShimStatus(std::string_view bytes, std::string& error);

// The daemon's side of the conversation: packets on a SOCK_SEQPACKET socket, one byte but for
// kAcknowledge. All are idempotent.
enum class ShimCommand : uint8_t {
  kStart = 'S',      // start the rank (once)
  kTerminate = 'T',  // SIGTERM + SIGCONT to the rank and all its descendants, once to each process
  kKill = 'K',       // SIGKILL to all descendants
  kQuit = 'Q',       // end: before kStart at once, after the rank's end when the pipes are drained
  // With a u8 (stream) and a u64 (offset): the controller has what lies below.
  kAcknowledge = 'A',
};

// Names inside a rank folder.
inline constexpr char kSpecFile[] = "spec";
inline constexpr char kExitFile[] = "exit";
inline constexpr char kSocketFile[] = "shim.sock";
inline constexpr char kShimLogFile[] = "shim.log";
inline constexpr char kErrorFile[] = "error.json";
inline constexpr std::array<const char*, kNumStreams> kLogFiles = {"stdout.log", "stderr.log",
                                                                   "events.jsonl"};
inline constexpr std::array<const char*, kNumStreams> kTimesFiles = {"stdout.times", "stderr.times",
                                                                     nullptr};
// The listening socket's number in the shim, as the daemon gives it.
inline constexpr int kListenFd = 3;

}  // namespace muster::shim
