#include "worker/daemon/probe_helper.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "common/spawn.h"
#include "common/unique_fd.h"
#include "worker/facts/answer_probe.h"
#include "worker/facts/helper_main.h"

namespace muster::worker {
namespace {

// Beyond the probe's own time limit, within which it answers whatever hangs.
constexpr std::chrono::seconds kPatience(2);
constexpr size_t kMaxAnswer = 1 << 20;  // no message of the protocol is larger

// A file with the bytes in it, read from its start: unlike a pipe it takes them all at once.
UniqueFd FileWith(const std::string& bytes) {
  UniqueFd fd(memfd_create("probe", MFD_CLOEXEC));
  size_t done = 0;
  while (fd && done < bytes.size()) {
    const ssize_t n = write(fd.get(), bytes.data() + done, bytes.size() - done);
    if (n <= 0 && errno != EINTR) fd.reset();
    if (n > 0) done += static_cast<size_t>(n);
  }
  if (fd) lseek(fd.get(), 0, SEEK_SET);
  return fd;
}

v1::ProbeResult Failed(uint64_t probe_id, const std::string& why) {
  v1::ProbeResult result;
  result.set_probe_id(probe_id);
  result.set_probe_error(why);
  return result;
}

}  // namespace

struct ProbeHelper::Running {
  uint64_t probe_id = 0;
  Done done;
  pid_t pid = 0;
  UniqueFd output;
  std::string text;
  std::string failure;  // it could not be started
  Reactor::TimerId limit = 0;
};

ProbeHelper::ProbeHelper(Reactor& reactor, Options options)
    : reactor_(reactor), options_(std::move(options)) {}

ProbeHelper::~ProbeHelper() {
  for (const auto& running : running_) {
    if (running->output) reactor_.Unwatch(running->output.get());
    reactor_.Cancel(running->limit);
    if (running->pid > 0) kill(-running->pid, SIGKILL);
  }
}

void ProbeHelper::Ask(const v1::Probe& probe, Done done) {
  const auto running = std::make_shared<Running>();
  running->probe_id = probe.probe_id();
  running->done = std::move(done);
  running_.push_back(running);
  Start(*running, probe);
  if (!running->failure.empty()) {
    running->limit = reactor_.After(std::chrono::nanoseconds(0), [this, running] {
      Finish(running, Failed(running->probe_id, running->failure));
    });
    return;
  }
  reactor_.Watch(running->output.get(), [this, running] { Read(running); });
  const auto limit = facts::TimeLimitOf(probe) + kPatience;
  running->limit = reactor_.After(limit, [this, running, limit] {
    Finish(running, Failed(running->probe_id, "its probe process gave no answer within " +
                                                  std::to_string(limit.count()) + " ms"));
  });
}

void ProbeHelper::Start(Running& running, const v1::Probe& probe) {
  int fds[2];
  const UniqueFd input = FileWith(probe.SerializeAsString());
  if (!input || pipe2(fds, O_CLOEXEC) != 0) {
    running.failure = std::string("make the probe's pipes: ") + std::strerror(errno);
    return;
  }
  running.output.reset(fds[0]);
  const UniqueFd writer(fds[1]);
  fcntl(fds[0], F_SETFL, O_NONBLOCK);
  // A group of its own, so that the tools it runs and their children end with it.
  const auto pid = Spawn({.words = {"musterd", "--answer-probe", options_.state_dir,
                                    std::to_string(options_.fake_devices), options_.kernel_log},
                          .program = options_.program,
                          .environment = JoinEnvironment(options_.environment),
                          .in = input.get(),
                          .out = writer.get(),
                          .err = STDERR_FILENO,
                          .group = SpawnOptions::Group::kOwn});
  if (pid.ok()) {
    running.pid = *pid;
    return;
  }
  running.output.reset();
  running.failure = "start " + std::string(pid.status().message());
}

void ProbeHelper::Read(const std::shared_ptr<Running>& running) {
  char buffer[16384];
  std::string& text = running->text;
  while (true) {
    const ssize_t n = read(running->output.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n > 0) text.append(buffer, static_cast<size_t>(n));
    size_t size = 0;
    const bool has_size = text.size() >= facts::kAnswerHeaderBytes;
    for (size_t i = 0; has_size && i < facts::kAnswerHeaderBytes; ++i)
      size = size << 8 | static_cast<unsigned char>(text[i]);
    const bool whole = has_size && text.size() - facts::kAnswerHeaderBytes >= size;
    if (n > 0 && !whole && text.size() <= kMaxAnswer) continue;
    if (n == 0) running->pid = 0;  // gone, and its number may be another's by now
    v1::ProbeResult result;
    if (!whole || size > kMaxAnswer ||
        !result.ParseFromArray(text.data() + facts::kAnswerHeaderBytes, static_cast<int>(size))) {
      result = Failed(running->probe_id, "its probe process ended without an answer");
    } else {
      running->pid = 0;  // ends by itself, with its group
    }
    Finish(running, std::move(result));
    return;
  }
}

void ProbeHelper::Finish(const std::shared_ptr<Running>& running, v1::ProbeResult result) {
  reactor_.Cancel(running->limit);
  if (running->output) reactor_.Unwatch(running->output.get());
  running->output.reset();
  if (running->pid > 0) kill(-running->pid, SIGKILL);
  const Done done = std::move(running->done);
  std::erase(running_, running);  // the caller's callback still has it
  done(std::move(result));
}

}  // namespace muster::worker
