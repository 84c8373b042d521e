// muster-train: one rank of a Llama pretraining job. Runs under Muster, torchrun, srun, mpirun or
// by hand.

#include <ATen/Parallel.h>
#include <c10/util/Logging.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "common/clock.h"
#include "common/version.h"
#include "trainer/config/print.h"
#include "trainer/loop/error_record.h"
#include "trainer/loop/events.h"
#include "trainer/loop/run.h"
#include "trainer/loop/signals.h"
#include "trainer/loop/train_loop.h"

namespace muster::loop {
namespace {

// LibTorch's own warnings repeat, with C++ stacks, what our errors say in a line;
// TORCH_CPP_LOG_LEVEL brings them back.
void QuietLibTorch() {
  constexpr int kFatal = 3;
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = kFatal;
}

// One thread unless OMP_NUM_THREADS says more, as torchrun does for several ranks on a machine.
void SetThreads() {
  const char* wanted = std::getenv("OMP_NUM_THREADS");
  const int threads = wanted == nullptr ? 1 : std::atoi(wanted);
  at::set_num_threads(threads > 0 ? threads : 1);
}

// An event has to fit into one line of 4 KiB; the record has the whole text.
constexpr size_t kLongestEventText = 2000;

ExitCode Train(config::CommandLine line, const config::RankEnvironment& env, EventWriter& events,
               std::chrono::steady_clock::time_point start) {
  Run run;
  run.sizes = ResolveAll(env.world_size, line);
  if (line.action == config::Action::kPrintConfig) {
    std::fputs(config::ConfigText(line).c_str(), stdout);
    return ExitCode::kOk;
  }
  run.line = std::move(line);
  run.env = env;
  run.program_start = start;
  run.events = &events;
  if (run.IsFirstRank()) {
    std::fputs(fmt::format("muster-train {}\n{}", kVersion, config::ChangedText(run.line)).c_str(),
               stdout);
    std::fflush(stdout);
  }
  if (run.config().exit_signal_handler) CatchTermination();
  Prepare(run);
  return TrainLoop(run);
}

ExitCode Main(const std::vector<std::string>& words) {
  const auto start = std::chrono::steady_clock::now();
  config::RankEnvironment env;
  EventWriter events(-1, 0);
  try {
    env =
        config::ReadEnvironment([](const char* name) -> const char* { return std::getenv(name); });
    events = EventWriter(static_cast<int>(env.event_fd), env.rank);
    config::CommandLine line = config::Parse(words);
    if (line.action == config::Action::kHelp) {
      std::fputs(config::HelpText().c_str(), stdout);
      return ExitCode::kOk;
    }
    if (line.action == config::Action::kVersion) {
      std::puts(fmt::format("muster-train {}", kVersion).c_str());
      return ExitCode::kOk;
    }
    return Train(std::move(line), env, events, start);
  } catch (...) {
    const Failure failure = CurrentFailure();
    std::fputs(fmt::format("muster-train: rank {}: {} error: {}\n", env.rank, failure.kind,
                           failure.message)
                   .c_str(),
               stderr);
    events.Write("error", {{"kind", failure.kind},
                           {"code", static_cast<int64_t>(failure.code)},
                           {"message", failure.message.substr(0, kLongestEventText)}});
    WriteErrorRecord(env.error_file,
                     ErrorRecord(failure, env.rank, Clock::Real().RealtimeNs() / 1'000'000'000));
    // At once: the destructors of a broken process group may wait for peers.
    std::fflush(nullptr);
    _exit(static_cast<int>(failure.code));
  }
}

}  // namespace
}  // namespace muster::loop

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  muster::loop::QuietLibTorch();
  muster::loop::SetThreads();
  const muster::ExitCode code = muster::loop::Main({argv + 1, argv + argc});
  std::fflush(nullptr);
  _exit(static_cast<int>(code));  // LibTorch's static destructors have nothing left to do for us
}
