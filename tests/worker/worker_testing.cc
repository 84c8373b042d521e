#include "tests/worker/worker_testing.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "worker/facts/proc_reader.h"

namespace muster::testing {

using std::chrono::milliseconds;

namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string Key(const v1::AttemptId& id) {
  return id.SerializeAsString();
}

}  // namespace

Daemon::Daemon(std::vector<std::string> arguments) {
  const std::string program = Variable("MUSTER_BIN") + "/musterd";
  arguments.insert(arguments.begin(), program);
  std::vector<char*> argv;
  for (std::string& word : arguments) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn(&pid_, program.c_str(), nullptr, nullptr, argv.data(), environ);
}

Daemon::~Daemon() {
  if (pid_ > 0) KillHard();
}

void Daemon::KillHard() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

int Daemon::Terminate() {
  kill(pid_, SIGTERM);
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

std::optional<int> Daemon::WaitExit(milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) return std::nullopt;
    std::this_thread::sleep_for(milliseconds(10));
  }
  pid_ = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

Client::Client(const std::string& target, const std::string& controller_id, bool acknowledge)
    : acknowledge_(acknowledge) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 20);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 20);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
  arguments.SetMaxReceiveMessageSize(64 << 20);
  // Every client its own connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  channel_ = grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
  channel_->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(10));
  stub_ = v1::Worker::NewStub(channel_);
  stream_ = stub_->Attach(&context_);
  reader_ = std::thread([this] { Read(); });
  if (controller_id.empty()) return;
  v1::AttachRequest hello;
  hello.mutable_hello()->set_protocol(1);
  hello.mutable_hello()->set_controller_id(controller_id);
  hello.mutable_hello()->set_version("test");
  Send(hello);
}

Client::~Client() {
  context_.TryCancel();
  reader_.join();
  if (!finished_) stream_->Finish();
}

void Client::Send(const v1::AttachRequest& request) {
  const std::lock_guard lock(write_mutex_);
  stream_->Write(request);
}

void Client::Send(const v1::Desired& wish) {
  v1::AttachRequest request;
  *request.mutable_desired() = wish;
  Send(request);
}

grpc::Status Client::Finish() {
  Wait([this] { return ended_; }, milliseconds(5000));
  finished_ = true;
  return stream_->Finish();
}

void Client::Read() {
  v1::AttachResponse response;
  while (stream_->Read(&response)) {
    v1::AttachRequest ack;
    if (acknowledge_ && response.has_log()) {
      v1::LogAck& out = *ack.mutable_log_ack();
      *out.mutable_id() = response.log().id();
      out.set_rank(response.log().rank());
      out.set_stream(response.log().stream());
      out.set_offset(response.log().offset() + response.log().data().size());
      out.set_end(response.log().end());
    }
    Take(std::move(response));
    if (ack.has_log_ack()) Send(ack);
    response.Clear();
  }
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

void Client::Take(v1::AttachResponse response) {
  const std::lock_guard lock(mutex_);
  if (response.has_hello()) hello_ = response.hello();
  if (response.has_observed()) observed_[Key(response.observed().id())] = response.observed();
  if (response.has_probe_result()) {
    probes_[response.probe_result().probe_id()] = response.probe_result();
  }
  if (response.has_log()) {
    const v1::LogChunk& chunk = response.log();
    Log& log = logs_[{chunk.rank(), chunk.stream()}];
    bytes_ += chunk.data().size();
    if (chunk.offset() > log.text.size()) {
      consistent_ = false;
    } else {
      const size_t known = log.text.size() - chunk.offset();
      if (log.text.compare(chunk.offset(), known, chunk.data().substr(0, known)) != 0 &&
          known <= chunk.data().size()) {
        consistent_ = false;
      }
      if (chunk.data().size() > known) log.text += chunk.data().substr(known);
    }
    log.times.insert(log.times.end(), chunk.times().begin(), chunk.times().end());
    log.end = log.end || chunk.end();
  }
  changed_.notify_all();
}

template <typename Predicate>
bool Client::Wait(Predicate predicate, milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, predicate);
}

std::optional<v1::WorkerHello> Client::WaitHello(milliseconds limit) {
  Wait([this] { return hello_.has_value() || ended_; }, limit);
  return hello_;
}

std::optional<v1::Observed> Client::WaitFor(const v1::AttemptId& id,
                                            const std::function<bool(const v1::Observed&)>& accept,
                                            milliseconds limit) {
  std::optional<v1::Observed> found;
  Wait(
      [&] {
        const auto it = observed_.find(Key(id));
        if (it == observed_.end() || !accept(it->second)) return false;
        found = it->second;
        return true;
      },
      limit);
  return found;
}

v1::ProbeResult Client::AskProbe(v1::Probe probe) {
  const uint64_t id = next_probe_++;
  probe.set_probe_id(id);
  v1::AttachRequest request;
  *request.mutable_probe() = probe;
  Send(request);
  Wait([&] { return probes_.contains(id); }, milliseconds(5000));
  const std::lock_guard lock(mutex_);
  return probes_[id];
}

std::optional<std::string> Client::WaitLog(uint32_t rank, v1::Stream stream, milliseconds limit) {
  const StreamKey key{rank, stream};
  if (!Wait([&] { return logs_[key].end; }, limit)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return logs_[key].text;
}

std::string Client::LogSoFar(uint32_t rank, v1::Stream stream) {
  const std::lock_guard lock(mutex_);
  return logs_[{rank, stream}].text;
}

bool Client::WaitText(uint32_t rank, v1::Stream stream, const std::string& text,
                      milliseconds limit) {
  return Wait([&] { return logs_[{rank, stream}].text.find(text) != std::string::npos; }, limit);
}

std::vector<v1::WriteTime> Client::Times(uint32_t rank, v1::Stream stream) {
  const std::lock_guard lock(mutex_);
  return logs_[{rank, stream}].times;
}

bool Client::LogsConsistent() {
  const std::lock_guard lock(mutex_);
  return consistent_;
}

uint64_t Client::BytesReceived() {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

TempDir::TempDir() {
  char name[] = "/tmp/mw-XXXXXX";
  path_ = mkdtemp(name);
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

v1::AttemptId Id(const std::string& job, uint32_t attempt, const std::string& controller) {
  v1::AttemptId id;
  id.set_controller_id(controller);
  id.set_job_id(job);
  id.set_attempt(attempt);
  return id;
}

v1::Desired Prepare(const v1::AttemptId& id, const std::vector<std::string>& argv, int count) {
  v1::Desired wish = Wish(id, 1, v1::GOAL_PREPARED);
  for (int i = 0; i < count; ++i) {
    v1::RankSpec* spec = wish.add_ranks();
    spec->set_rank(static_cast<uint32_t>(i));
    spec->set_local_rank(static_cast<uint32_t>(i));
    for (const std::string& word : argv) spec->add_argv(word);
    spec->set_working_dir("/");
    const auto set = [spec](const char* name, const std::string& value) {
      v1::EnvVar* variable = spec->add_env();
      variable->set_name(name);
      variable->set_value(value);
    };
    set("RANK", std::to_string(i));
    set("LOCAL_RANK", std::to_string(i));
    set("WORLD_SIZE", std::to_string(count));
  }
  return wish;
}

v1::Desired Wish(const v1::AttemptId& id, uint64_t generation, v1::Goal goal, double grace_s) {
  v1::Desired wish;
  *wish.mutable_id() = id;
  wish.set_generation(generation);
  wish.set_goal(goal);
  if (grace_s >= 0) {
    const auto ns = static_cast<int64_t>(grace_s * 1e9);
    wish.mutable_grace()->set_seconds(ns / 1'000'000'000);
    wish.mutable_grace()->set_nanos(static_cast<int32_t>(ns % 1'000'000'000));
  }
  return wish;
}

std::vector<std::string> Golden(const std::string& name, std::vector<std::string> arguments) {
  const std::string folder = Variable("MUSTER_GOLDEN") + "/ranks/";
  std::vector<std::string> argv;
  if (std::filesystem::exists(folder + name + ".py")) {
    // A version manager's python3 in PATH would cost half a second a start.
    argv = {"/usr/bin/python3", folder + name + ".py"};
  } else if (std::filesystem::exists(folder + name + ".sh")) {
    argv = {"/bin/sh", folder + name + ".sh"};
  } else {
    argv = {Variable("MUSTER_BIN") + "/golden_ranks/" + name};
  }
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return argv;
}

bool Alive(pid_t pid) {
  const auto stat = facts::ProcReader::Real().Stat(pid);
  return stat && !stat->IsZombie();
}

bool WaitGone(pid_t pid, milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (Alive(pid)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return true;
}

std::vector<pid_t> ProcessesOf(const std::string& controller_id) {
  std::vector<pid_t> found;
  const facts::ProcReader& proc = facts::ProcReader::Real();
  for (const pid_t pid : proc.Pids()) {
    const std::string environment = '\0' + proc.Environ(pid).value_or("");
    if (Alive(pid) && environment.find(std::string(1, '\0') + "MUSTER_ATTEMPT=" + controller_id +
                                       "/") != std::string::npos) {
      found.push_back(pid);
    }
  }
  return found;
}

const v1::RankStatus& RankOf(const v1::Observed& observed, uint32_t rank) {
  static const v1::RankStatus none;
  for (const v1::RankStatus& status : observed.ranks()) {
    if (status.rank() == rank) return status;
  }
  return none;
}

bool AllIn(const v1::Observed& observed, v1::RankState state) {
  for (const v1::RankStatus& status : observed.ranks()) {
    if (status.state() != state) return false;
  }
  return !observed.ranks().empty();
}

}  // namespace muster::testing
