// muster-commtest: measures and checks the communication between the ranks of a job.
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <c10/util/Logging.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "common/clock.h"
#include "common/version.h"
#include "trainer/commtest/run.h"
#include "trainer/config/environment.h"
#include "trainer/config/error.h"
#include "trainer/loop/error_record.h"
#include "trainer/parallel/gloo_address.h"

namespace muster::commtest {
namespace {

// LibTorch's own warnings repeat, with C++ stacks, what our errors say in a line;
// TORCH_CPP_LOG_LEVEL brings them back.
void QuietLibTorch() {
  constexpr int kFatal = 3;
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = kFatal;
}

const char* Variable(const char* name) {
  return std::getenv(name);
}

// Under Muster the hostfile's name. Else the machine's, with its address on the way to rank 0,
// since machines and containers may share a name.
std::string HostName(const config::RankEnvironment& env) {
  if (const char* host = Variable("MUSTER_HOST"); host != nullptr && *host != '\0') return host;
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  const auto route = parallel::RouteTo(env.master_addr, static_cast<int>(env.master_port));
  if (!route || parallel::IsLoopback(route->local)) return name.data();
  return fmt::format("{} ({})", name.data(), route->local);
}

ExitCode Test(const Options& options, const config::RankEnvironment& env) {
  Group group = Connect(options, env);
  const bool speaks = env.rank == 0;
  const auto print = [&](const std::string& text) {
    if (!speaks || options.json) return;
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  };
  const Report report = RunTest(group, options, HostName(env), print);
  print(VerdictText(report));
  if (speaks && options.json) std::fputs(JsonText(report).c_str(), stdout);
  group.Barrier();  // nobody leaves before all have finished
  const auto wrong = WrongData(report);
  if (wrong.empty()) return ExitCode::kOk;
  if (speaks) {
    std::fflush(stdout);
    throw TrainerError(ExitCode::kData, "data", wrong.front());
  }
  return ExitCode::kData;
}

struct Failure {
  ExitCode code = ExitCode::kInternal;
  std::string kind = "internal";
  std::string message;
};

ExitCode Fail(const config::RankEnvironment& env, const Failure& failure) {
  std::fputs(fmt::format("muster-commtest: rank {}: {} error: {}\n", env.rank, failure.kind,
                         failure.message)
                 .c_str(),
             stderr);
  const loop::Failure record{failure.code, failure.kind, failure.message};
  loop::WriteErrorRecord(
      env.error_file,
      loop::ErrorRecord(record, env.rank, Clock::Real().RealtimeNs() / 1'000'000'000));
  return failure.code;
}

ExitCode Main(const std::vector<std::string>& words) {
  config::RankEnvironment env;
  try {
    const Options options = ParseOptions(words);
    if (options.help) {
      std::fputs(kHelp, stdout);
      return ExitCode::kOk;
    }
    if (options.version) {
      std::puts(
          options.json
              ? fmt::format(R"({{"program":"muster-commtest","version":"{}"}})", kVersion).c_str()
              : fmt::format("muster-commtest {}", kVersion).c_str());
      return ExitCode::kOk;
    }
    env = config::ReadEnvironment(Variable);
    return Test(options, env);
  } catch (const TrainerError& error) {
    return Fail(env, {error.code(), error.kind(), error.what()});
  } catch (const c10::Error& error) {
    return Fail(env, {ExitCode::kInternal, "internal", error.what_without_backtrace()});
  } catch (const std::exception& error) {
    return Fail(env, {ExitCode::kInternal, "internal", error.what()});
  }
}

}  // namespace
}  // namespace muster::commtest

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  muster::commtest::QuietLibTorch();
  at::set_num_threads(1);
  const muster::ExitCode code = muster::commtest::Main({argv + 1, argv + argc});
  std::fflush(nullptr);
  _exit(static_cast<int>(code));  // the destructors of a broken group may wait for peers
}
