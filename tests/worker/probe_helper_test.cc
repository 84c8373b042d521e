#include "worker/daemon/probe_helper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "tests/worker/worker_testing.h"
#include "worker/daemon/device_probe.h"

// The process that answers probes, played by scripts.

namespace muster::worker {
namespace {

using muster::testing::TempDir;
using std::chrono::milliseconds;
using ::testing::ElementsAre;

class ProbeHelperTest : public ::testing::Test {
 protected:
  ProbeHelper::Options Script(const std::string& text) {
    const std::string path = File("script");
    std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
    chmod(path.c_str(), 0755);
    return {.program = path,
            .state_dir = temp_.path(),
            .kernel_log = "",
            .environment = {{"PATH", "/usr/bin:/bin"}}};
  }

  std::string File(const std::string& name) const { return temp_.path() + "/" + name; }

  // Runs the reactor, once, until `done` holds; the limit is one that only a broken one reaches.
  static bool RunUntil(Reactor& reactor, const std::function<bool()>& done) {
    bool held = false;
    std::atomic<bool> over = false;
    std::thread ticker([&] {
      for (int i = 0; i < 3000 && !over; ++i) {
        reactor.Post([&] {
          held = held || done();
          if (held) reactor.Stop();
        });
        usleep(10'000);
      }
      reactor.Stop();
    });
    reactor.Run();
    over = true;
    ticker.join();
    return held;
  }

  const TempDir temp_;
};

// Dead, or dead and not yet reaped by whoever inherited it.
bool HasEnded(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  return !std::getline(stat, line) || line.find(") Z ") != std::string::npos ||
         line.find(") X ") != std::string::npos;
}

TEST_F(ProbeHelperTest, EndsWithWhatItsToolsHaveStarted) {
  Reactor reactor(Clock::Real());
  pid_t child = 0;
  {
    ProbeHelper helper(reactor, Script("sh -c 'sleep 1000 & echo $! >" + File("part") + "; mv " +
                                       File("part") + " " + File("pid") + "; wait'"));
    helper.Ask({}, [](const v1::ProbeResult&) {});
    ASSERT_TRUE(RunUntil(reactor, [&] { return std::filesystem::exists(File("pid")); }));
    std::ifstream(File("pid")) >> child;
    ASSERT_GT(child, 1);
    ASSERT_FALSE(HasEnded(child));
  }
  for (int i = 0; i < 3000 && !HasEnded(child); ++i) usleep(10'000);
  EXPECT_TRUE(HasEnded(child));
}

TEST_F(ProbeHelperTest, AToolThatIsSlowHoldsNoHelloUp) {
  v1::ProbeResult found;
  found.add_devices()->set_index(7);
  const std::string bytes = found.SerializeAsString();
  ASSERT_LT(bytes.size(), 256u);
  std::ofstream(File("answer"), std::ios::binary)
      << std::string(3, '\0') << static_cast<char>(bytes.size()) << bytes;
  FakeClock clock;
  Reactor reactor(clock);
  ProbeHelper helper(reactor, Script("while ! [ -e " + File("go") +
                                     " ]; do sleep 0.01; done; cat " + File("answer")));
  DeviceProbe probe(reactor, helper, 0);
  std::vector<int> counts;
  probe.Ask([&](const std::vector<v1::Device>& devices) {
    counts.push_back(static_cast<int>(devices.size()));
  });
  clock.Advance(milliseconds(2'500));
  EXPECT_TRUE(RunUntil(reactor, [&] {
    if (counts.size() == 1) std::ofstream(File("go")) << "";
    return counts.size() == 2;
  }));
  EXPECT_THAT(counts, ElementsAre(0, 1));
}

}  // namespace
}  // namespace muster::worker
