#include "worker/shim/shim.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "worker/shim/frame.h"
#include "worker/shim/rank_child.h"

namespace muster::shim {
namespace {

using std::chrono::milliseconds;

// Growth of the logs is told at most this often; changes of state at once.
constexpr milliseconds kGrowthInterval(20);
// A rank that writes faster than its logs are taken waits for moments all the time: that is no
// news.
constexpr milliseconds kWaitsAfter(2000);
// A prepared shim that no daemon has asked for anything this long is an orphan.
constexpr std::chrono::minutes kPreparedOrphanLimit(10);

void Complain(const std::string& message) {
  const std::string line = "muster-shim: " + message + "\n";
  (void)!write(STDERR_FILENO, line.data(), line.size());
}

// Whether only the sizes of the logs differ.
bool OnlyGrowth(ShimStatus a, const ShimStatus& b) {
  for (size_t i = 0; i < kNumStreams; ++i) {
    a.streams[i].size = b.streams[i].size;
    a.streams[i].lost = b.streams[i].lost;
  }
  return a == b;
}

}  // namespace

Shim::Shim(RankSpec spec, UniqueFd listener, const Clock& clock, const facts::ProcReader& proc)
    : spec_(std::move(spec)), clock_(clock), proc_(proc), listener_(std::move(listener)) {
  client_lost_ = clock_.Now();
  status_.shim_pid = getpid();
  if (const auto stat = proc_.Stat(getpid())) status_.shim_start_ticks = stat->start_ticks;
}

int Shim::Run() {
  if (!Setup()) return 1;
  while (!MayEnd()) Poll();
  Publish(true);
  unlink(kSocketFile);
  return 0;
}

bool Shim::Setup() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  // A full disk must end in an error, a vanished daemon in EPIPE, and a terminal is nothing to us.
  for (const int sig : {SIGPIPE, SIGXFSZ, SIGHUP, SIGINT, SIGTERM, SIGQUIT}) signal(sig, SIG_IGN);
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  sigprocmask(SIG_BLOCK, &mask, nullptr);
  child_signals_.reset(signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!child_signals_) {
    Complain(std::string("signalfd: ") + std::strerror(errno));
    return false;
  }
  fcntl(listener_.get(), F_SETFL, O_NONBLOCK);
  const bool limited = spec_.quota.bytes > 0;
  if (limited && !floors_.Create(kFloorFile)) {
    FailSetup(std::string("create ") + kFloorFile + ": " + std::strerror(errno));
  }
  for (size_t i = 0; i < kNumStreams; ++i) {
    StreamPump::Files files;
    files.log = kLogFiles[i];
    if (kTimesFiles[i] != nullptr) files.times = kTimesFiles[i];
    files.quota = spec_.quota;
    files.floor = limited ? &floors_ : nullptr;
    files.stream = i;
    pumps_[i] = std::make_unique<StreamPump>(std::move(files), clock_);
    if (!pumps_[i]->error().empty()) FailSetup(pumps_[i]->error());
  }
  return true;
}

void Shim::FailSetup(const std::string& error) {
  if (!status_.error.empty()) return;
  status_.state = ShimState::kFailed;
  status_.exit_code = 126;
  status_.ended_ns = clock_.RealtimeNs();
  status_.error = error;
}

void Shim::Poll() {
  pollfd fds[3 + kNumStreams];
  nfds_t count = 0;
  const auto add = [&](int fd) { fds[count++] = {fd, POLLIN, 0}; };
  add(listener_.get());
  add(client_.get());  // poll ignores -1
  add(child_signals_.get());
  for (const auto& pump : pumps_) add(pump->fd());
  int timeout_ms = -1;
  if (client_ && status_ != sent_) {
    timeout_ms = static_cast<int>(kGrowthInterval.count());
  } else if (AnyWaits()) {
    timeout_ms = static_cast<int>(kWaitsAfter.count());  // to say so in time
  } else if (status_.state == ShimState::kPrepared) {
    timeout_ms = 60'000;
  }
  if (poll(fds, count, timeout_ms) < 0 && errno != EINTR) {
    Complain(std::string("poll: ") + std::strerror(errno));
    return;
  }
  Accept();
  ReadCommands();
  // The end of the rank is told before its streams end: exit is not end-of-file.
  signalfd_siginfo info;
  while (read(child_signals_.get(), &info, sizeof info) > 0) {
  }
  Reap();
  PumpAll();
  Publish(false);
}

void Shim::Accept() {
  while (true) {
    UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    ucred peer{};
    socklen_t size = sizeof peer;
    getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
    if (peer.uid != getuid() && peer.uid != 0) continue;
    client_ = std::move(fd);
    sent_any_ = false;
  }
}

void Shim::ReadCommands() {
  while (client_) {
    char packet[16] = {};
    const ssize_t n = recv(client_.get(), packet, sizeof packet, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      client_.reset();
      client_lost_ = clock_.Now();
      return;
    }
    Obey(static_cast<ShimCommand>(packet[0]), {packet + 1, static_cast<size_t>(n) - 1});
  }
}

void Shim::Obey(ShimCommand command, std::string_view rest) {
  switch (command) {
    case ShimCommand::kStart:
      if (status_.state == ShimState::kPrepared) Start();
      return;
    case ShimCommand::kTerminate:
      if (status_.state != ShimState::kPrepared) Terminate();
      return;
    case ShimCommand::kKill:
      if (status_.state != ShimState::kPrepared) Kill();
      return;
    case ShimCommand::kQuit:
      quit_ = status_.state != ShimState::kRunning;
      return;
    case ShimCommand::kAcknowledge:
      Acknowledge(rest);
      return;
  }
  Complain("unknown command " + std::to_string(static_cast<int>(command)));
}

void Shim::Acknowledge(std::string_view fields) {
  FieldReader in(fields);
  const size_t stream = in.U8();
  const uint64_t offset = in.U64();
  if (in.Done() && stream < kNumStreams) pumps_[stream]->Acknowledge(offset);
}

void Shim::Start() {
  RankChild child = StartRank(spec_);
  status_.started_ns = clock_.RealtimeNs();
  if (child.pid == 0) {
    status_.state = ShimState::kFailed;
    status_.error = child.error;
    status_.exit_code = child.exit_code;
    status_.ended_ns = status_.started_ns;
    Publish(true);
    return;
  }
  status_.state = ShimState::kRunning;
  status_.rank_pid = child.pid;
  status_.in_cgroup = child.in_cgroup;
  if (const auto stat = proc_.Stat(child.pid)) status_.rank_start_ticks = stat->start_ticks;
  for (size_t i = 0; i < kNumStreams; ++i) pumps_[i]->Attach(std::move(child.pipes[i]));
  Publish(true);
}

void Shim::Reap() {
  bool rank_ended = false;
  while (true) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WCONTINUED | WNOHANG) != 0 ||
        info.si_pid == 0) {
      break;
    }
    if (info.si_pid != status_.rank_pid || status_.state != ShimState::kRunning) continue;
    if (info.si_code == CLD_STOPPED || info.si_code == CLD_CONTINUED) {
      status_.stopped = info.si_code == CLD_STOPPED;
      continue;
    }
    status_.ended_ns = clock_.RealtimeNs();
    status_.state = ShimState::kExited;
    status_.stopped = false;
    status_.core_dumped = info.si_code == CLD_DUMPED;
    status_.signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
    status_.exit_code = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
    rank_ended = true;
  }
  if (!rank_ended) return;
  // Who hears of the end looks into the log for the rank's last words.
  for (auto& pump : pumps_) pump->Pump();
  Publish(true);
}

void Shim::PumpAll() {
  for (auto& pump : pumps_) pump->Pump();
  if (!quit_ || !status_.Ended()) return;
  // The daemon has ended what could be ended; a holder that is left must not hold us. One round
  // took what was there.
  for (auto& pump : pumps_) {
    if (!pump->Pump(/*last=*/true)) pump->Close();
  }
}

bool Shim::IsRank(const facts::ProcStat& process) const {
  return status_.state == ShimState::kRunning && process.pid == status_.rank_pid;
}

void Shim::Terminate() {
  for (const facts::ProcStat& process : facts::ProcTree(proc_).Descendants(getpid())) {
    if (process.IsZombie() || !terminated_.emplace(process.pid, process.start_ticks).second) {
      continue;
    }
    // A rank that is a zombie by now has ended by itself.
    if (IsRank(process)) status_.term_sent = true;
    // TERM first: a stopped process then wakes up with the signal already pending.
    kill(process.pid, SIGTERM);
    kill(process.pid, SIGCONT);
  }
}

void Shim::Kill() {
  // A process may fork between the look and the kill; the daemon repeats the command until nothing
  // is left.
  for (int round = 0; round < 3; ++round) {
    bool any = false;
    for (const facts::ProcStat& process : facts::ProcTree(proc_).Descendants(getpid())) {
      if (process.IsZombie()) continue;
      any = true;
      if (IsRank(process)) status_.kill_sent = true;
      kill(process.pid, SIGKILL);
    }
    if (!any) return;
  }
}

bool Shim::MayEnd() {
  if (status_.state == ShimState::kPrepared) {
    return quit_ || (!client_ && clock_.Now() - client_lost_ > kPreparedOrphanLimit);
  }
  if (!status_.Ended()) return false;
  for (const auto& pump : pumps_) {
    if (pump->open()) return false;
  }
  if (quit_) return true;
  // Also a failed start stays until the daemon has seen it or is gone.
  return status_.childless && (!client_ || (sent_any_ && sent_ == status_));
}

bool Shim::AnyWaits() const {
  return std::any_of(pumps_.begin(), pumps_.end(), [](const auto& pump) { return pump->waits(); });
}

void Shim::Publish(bool urgent) {
  Refresh();
  Tell(urgent);
  const int finished = status_.Ended() + status_.Drained() + status_.childless;
  if (finished <= recorded_) return;
  recorded_ = finished;
  Record();
}

void Shim::Refresh() {
  const auto moment = clock_.Now();
  if (!AnyWaits()) moved_ = moment;
  status_.log_waits = moment - moved_ >= kWaitsAfter;
  for (size_t i = 0; i < kNumStreams; ++i) {
    status_.streams[i].size = pumps_[i]->size();
    status_.streams[i].lost = pumps_[i]->lost();
    status_.streams[i].eof = status_.Ended() && !pumps_[i]->open();
    if (status_.lost_error.empty() && pumps_[i]->lost() > 0)
      status_.lost_error = pumps_[i]->error();
  }
  if (!status_.Ended() || status_.childless) return;
  // It starts nothing any more, so this stays true.
  siginfo_t info{};
  status_.childless = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
}

void Shim::Tell(bool urgent) {
  if (!client_ || (sent_any_ && sent_ == status_)) return;
  const auto now = clock_.Now();
  if (!urgent && sent_any_ && OnlyGrowth(sent_, status_) && now - last_sent_ < kGrowthInterval)
    return;
  const std::string message = EncodeShimStatus(status_);
  const ssize_t n = send(client_.get(), message.data(), message.size(), MSG_NOSIGNAL);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;  // told again by the next turn
  if (n < 0) {
    client_.reset();
    client_lost_ = now;
    return;
  }
  sent_ = status_;
  sent_any_ = true;
  last_sent_ = now;
}

void Shim::Record() {
  std::string error;
  if (!WriteFileAtomic(kExitFile, EncodeShimStatus(status_), error)) Complain(error);
}

}  // namespace muster::shim
