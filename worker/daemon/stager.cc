#include "worker/daemon/stager.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "common/spawn.h"
#include "common/unique_fd.h"
#include "worker/stage/frame.h"

namespace muster::worker {
namespace {

constexpr size_t kMostTransfers = 8;
constexpr std::chrono::minutes kOrphanLife(2);
// The controller sends only what was asked for (stage.proto): some pieces.
constexpr size_t kMostUnwritten = size_t{16} << 20;

}  // namespace

struct Stager::Running {
  std::string controller_id;
  uint64_t transfer = 0;
  pid_t pid = 0;
  UniqueFd socket;
  std::string input;
  std::string output;
  Reactor::TimerId orphan = 0;
  bool finished = false;  // it said how it ended
};

Stager::Stager(Reactor& reactor, Options options, Send send)
    : reactor_(reactor), options_(std::move(options)), send_(std::move(send)) {}

Stager::~Stager() {
  while (!running_.empty()) End(running_.back());
}

Stager::RunningPtr Stager::Find(const std::string& controller_id, uint64_t transfer) const {
  for (const RunningPtr& running : running_) {
    if (running->controller_id == controller_id && running->transfer == transfer) return running;
  }
  return nullptr;
}

void Stager::Take(const std::string& controller_id, const v1::StageOrder& order) {
  RunningPtr running = Find(controller_id, order.transfer());
  if (order.has_end()) {
    if (running) End(running);
    return;
  }
  if (!running && order.has_begin()) {
    // After a reconnect the transfers that go on are begun again first: what is still without its
    // controller belongs to nobody, and holds the lock of its tree.
    const std::vector<RunningPtr> all = running_;
    for (const RunningPtr& old : all) {
      if (old->controller_id == controller_id && old->orphan != 0) End(old);
    }
    running = Start(controller_id, order.transfer());
  }
  if (!running) return;
  if (running->orphan != 0) reactor_.Cancel(std::exchange(running->orphan, 0));
  Write(running, order);
}

Stager::RunningPtr Stager::Start(const std::string& controller_id, uint64_t transfer) {
  int sockets[2];
  if (running_.size() >= kMostTransfers) {
    Fail(controller_id, transfer, "too many transfers at a time on this host");
    return nullptr;
  }
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    Fail(controller_id, transfer, std::string("make a socket: ") + std::strerror(errno));
    return nullptr;
  }
  auto running = std::make_shared<Running>();
  running->controller_id = controller_id;
  running->transfer = transfer;
  running->socket.reset(sockets[0]);
  const UniqueFd theirs(sockets[1]);
  fcntl(sockets[0], F_SETFL, O_NONBLOCK);
  const auto pid = Spawn({.words = {"musterd", "--stage", options_.state_dir},
                          .program = options_.program,
                          .in = theirs.get(),
                          .out = theirs.get(),
                          .err = STDERR_FILENO,
                          .group = SpawnOptions::Group::kOwn});
  if (!pid.ok()) {
    Fail(controller_id, transfer, std::string(pid.status().message()));
    return nullptr;
  }
  running->pid = *pid;
  running_.push_back(running);
  reactor_.Watch(running->socket.get(), [this, running] {
    Flush(running);
    Read(running);
  });
  return running;
}

void Stager::Write(const RunningPtr& running, const v1::StageOrder& order) {
  if (running->output.size() > kMostUnwritten) return;  // asked for by nobody
  running->output += stage::Frame(order.SerializeAsString());
  Flush(running);
}

void Stager::Flush(const RunningPtr& running) {
  size_t done = 0;
  while (done < running->output.size()) {
    const ssize_t n = send(running->socket.get(), running->output.data() + done,
                           running->output.size() - done, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  running->output.erase(0, done);
  reactor_.Want(running->socket.get(), true, !running->output.empty());
}

void Stager::Read(const RunningPtr& running) {
  char buffer[65536];
  while (running->socket) {
    const ssize_t n = read(running->socket.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      running->pid = 0;  // gone, and its number may be another's by now
      const bool told = running->finished;
      End(running);
      if (!told) {
        Fail(running->controller_id, running->transfer,
             "its staging process ended; what it had verified stays");
      }
      return;
    }
    std::string& input = running->input;
    input.append(buffer, static_cast<size_t>(n));
    while (input.size() >= stage::kFrameHeaderBytes) {
      const size_t size = stage::FrameSize(input);
      if (input.size() - stage::kFrameHeaderBytes < size) break;
      v1::StageReport report;
      const bool good =
          report.ParseFromArray(input.data() + stage::kFrameHeaderBytes, static_cast<int>(size));
      input.erase(0, stage::kFrameHeaderBytes + size);
      if (!good) continue;
      if (report.has_status() && report.status().state() >= v1::STAGE_STATE_DONE)
        running->finished = true;
      send_(running->controller_id, std::move(report));
    }
  }
}

void Stager::End(const RunningPtr& running) {
  if (running->orphan != 0) reactor_.Cancel(running->orphan);
  if (running->socket) reactor_.Unwatch(running->socket.get());
  running->socket.reset();
  if (running->pid > 0) kill(-running->pid, SIGKILL);
  // Nothing of `running` after this: it may be a reference to what goes.
  std::erase_if(running_,
                [gone = running.get()](const RunningPtr& one) { return one.get() == gone; });
}

void Stager::Fail(const std::string& controller_id, uint64_t transfer, const std::string& why) {
  v1::StageReport report;
  report.set_transfer(transfer);
  report.mutable_status()->set_state(v1::STAGE_STATE_FAILED);
  report.mutable_status()->set_error(why);
  send_(controller_id, std::move(report));
}

void Stager::OnDisconnected(const std::string& controller_id) {
  for (const RunningPtr& running : running_) {
    if (running->controller_id != controller_id || running->orphan != 0) continue;
    running->orphan = reactor_.After(kOrphanLife, [this, running] {
      running->orphan = 0;
      End(running);
    });
  }
}

}  // namespace muster::worker
