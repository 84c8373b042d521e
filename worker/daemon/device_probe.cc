#include "worker/daemon/device_probe.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/log.h"

namespace muster::worker {
namespace {

constexpr std::chrono::seconds kLimit(10);
constexpr size_t kMaxOutput = 1 << 20;

}  // namespace

DeviceProbe::DeviceProbe(Reactor& reactor, uint32_t fake) : reactor_(reactor), fake_(fake) {}

DeviceProbe::~DeviceProbe() {
  if (output_) reactor_.Unwatch(output_.get());
  if (limit_ != 0) reactor_.Cancel(limit_);
}

void DeviceProbe::Ask(Done done) {
  if (fake_ > 0) {
    done(facts::FakeDevices(fake_));
    return;
  }
  waiting_.push_back(std::move(done));
  if (waiting_.size() == 1) Start();
}

void DeviceProbe::Start() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) {
    Answer({});
    return;
  }
  output_.reset(fds[0]);
  const UniqueFd writer(fds[1]);
  fcntl(fds[0], F_SETFL, O_NONBLOCK);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  std::vector<std::string> words = facts::NvidiaSmiCommand();
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int error = posix_spawnp(&tool_, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    // No tool, no devices: ranks then share the processors.
    output_.reset();
    Answer({});
    return;
  }
  text_.clear();
  reactor_.Watch(output_.get(), [this] { Read(); });
  limit_ = reactor_.After(kLimit, [this] {
    limit_ = 0;
    log::Warning("nvidia-smi did not answer within 10 s: no devices reported");
    kill(tool_, SIGKILL);
    reactor_.Unwatch(output_.get());
    output_.reset();
    Answer({});
  });
}

void DeviceProbe::Read() {
  char buffer[4096];
  while (true) {
    const ssize_t n = read(output_.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n > 0 && text_.size() < kMaxOutput) text_.append(buffer, static_cast<size_t>(n));
    if (n <= 0) break;
  }
  reactor_.Unwatch(output_.get());
  output_.reset();
  reactor_.Cancel(std::exchange(limit_, 0));
  Answer(facts::ParseNvidiaSmi(text_));
}

void DeviceProbe::Answer(const std::vector<facts::DeviceFact>& devices) {
  for (const Done& done : std::exchange(waiting_, {})) done(devices);
}

}  // namespace muster::worker
