#pragma once

#include <grpcpp/grpcpp.h>
#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "muster/v1/worker.grpc.pb.h"

// A real musterd in a temporary state folder, and a controller's side of its stream.

namespace muster::testing {

// A musterd process. Ended with SIGKILL by the destructor if it still runs.
class Daemon {
 public:
  explicit Daemon(std::vector<std::string> arguments);
  ~Daemon();
  // SIGKILL and wait.
  void KillHard();
  // SIGTERM and wait; the exit code.
  int Terminate();
  // Waits for its own end; nothing after `limit`.
  std::optional<int> WaitExit(std::chrono::milliseconds limit);
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

using StreamKey = std::pair<uint32_t, v1::Stream>;

// Speaks Attach and keeps what came. Thread-safe.
class Client {
 public:
  // `acknowledge`: log chunks are acknowledged as they come.
  Client(const std::string& target, const std::string& controller_id, bool acknowledge = true);
  ~Client();
  void Send(const v1::AttachRequest& request);
  void Send(const v1::Desired& wish);
  // The final status of the stream.
  grpc::Status Finish();

  std::optional<v1::WorkerHello> WaitHello(std::chrono::milliseconds limit);
  // The newest Observed of the attempt for which `accept` holds; nothing after `limit`.
  std::optional<v1::Observed> WaitFor(const v1::AttemptId& id,
                                      const std::function<bool(const v1::Observed&)>& accept,
                                      std::chrono::milliseconds limit);
  v1::ProbeResult AskProbe(v1::Probe probe);
  // The whole text of a stream once its end has come.
  std::optional<std::string> WaitLog(uint32_t rank, v1::Stream stream,
                                     std::chrono::milliseconds limit);
  // What has come so far.
  std::string LogSoFar(uint32_t rank, v1::Stream stream);
  bool WaitText(uint32_t rank, v1::Stream stream, const std::string& text,
                std::chrono::milliseconds limit);
  std::vector<v1::WriteTime> Times(uint32_t rank, v1::Stream stream);
  // Bytes that arrived at an offset where others had come before, and differed.
  bool LogsConsistent();
  // Bytes of log received in all, resent ones included.
  uint64_t BytesReceived();

 private:
  struct Log {
    std::string text;
    std::vector<v1::WriteTime> times;
    bool end = false;
  };
  void Read();
  void Take(v1::AttachResponse response);
  template <typename Predicate>
  bool Wait(Predicate predicate, std::chrono::milliseconds limit);

  const bool acknowledge_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Worker::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AttachRequest, v1::AttachResponse>> stream_;
  std::mutex write_mutex_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<v1::WorkerHello> hello_;
  std::map<std::string, v1::Observed> observed_;
  std::map<uint64_t, v1::ProbeResult> probes_;
  std::map<StreamKey, Log> logs_;
  uint64_t next_probe_ = 1;
  uint64_t bytes_ = 0;
  bool consistent_ = true;
  bool ended_ = false;
  bool finished_ = false;  // the test's thread only
  std::thread reader_;
};

// A temporary folder with a short path, removed at the end.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

v1::AttemptId Id(const std::string& job, uint32_t attempt = 0,
                 const std::string& controller = "ctl");
// Ranks first..first+count-1 that all run `argv`, with RANK, LOCAL_RANK and WORLD_SIZE set.
v1::Desired Prepare(const v1::AttemptId& id, const std::vector<std::string>& argv, int count = 1);
v1::Desired Wish(const v1::AttemptId& id, uint64_t generation, v1::Goal goal, double grace_s = -1);
// A golden rank: a Python program, a shell script or a compiled program, with its arguments.
std::vector<std::string> Golden(const std::string& name, std::vector<std::string> arguments = {});
// Whether the process lives (a zombie does not).
bool Alive(pid_t pid);
bool WaitGone(pid_t pid, std::chrono::milliseconds limit);
// The processes whose environment has MUSTER_ATTEMPT with this controller id.
std::vector<pid_t> ProcessesOf(const std::string& controller_id);

const v1::RankStatus& RankOf(const v1::Observed& observed, uint32_t rank);
bool AllIn(const v1::Observed& observed, v1::RankState state);

}  // namespace muster::testing
