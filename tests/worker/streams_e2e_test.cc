// What ranks write arrives byte for byte, whatever they do.
#include <nlohmann/json.hpp>

#include "tests/worker/e2e_fixture.h"

namespace muster::testing {
namespace {

class StreamsE2e : public WorkerE2e {
 protected:
  std::string Output(const v1::AttemptId& id, const std::vector<std::string>& argv,
                     v1::Stream stream = v1::STREAM_STDOUT) {
    Launch(id, argv);
    WaitEnd(id, 60s);
    const auto log = client_->WaitLog(0, stream, 20s);
    EXPECT_TRUE(log);
    return log.value_or("");
  }
};

std::string Hash(const std::string& text) {
  uint64_t h = 1469598103934665603ull;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  char out[32];
  std::snprintf(out, sizeof out, "%016llx", static_cast<unsigned long long>(h));
  return out;
}

TEST_F(StreamsE2e, BinaryIsExact) {
  const std::string text = Output(Job("1"), Golden("binary"));
  EXPECT_EQ(text, ReadFile(RankFile(Job("1"), 0, "stdout.log")));
  EXPECT_NE(text.find(std::string("nul \0 inside\n", 13)), std::string::npos);
  const auto err = client_->WaitLog(0, v1::STREAM_STDERR, 5s);
  ASSERT_TRUE(err);
  EXPECT_NE(err->find("binary: " + std::to_string(text.size()) + " bytes"), std::string::npos);
}

TEST_F(StreamsE2e, FloodIsComplete) {
  const std::string text = Output(Job("2"), Golden("flood", {"16"}));
  EXPECT_EQ(text.size(), 16u << 20);
  const auto err = client_->WaitLog(0, v1::STREAM_STDERR, 5s);
  ASSERT_TRUE(err);
  EXPECT_NE(err->find(Hash(text)), std::string::npos) << *err;
  EXPECT_TRUE(client_->LogsConsistent());
}

TEST_F(StreamsE2e, BurstBeforeTheExitIsComplete) {
  const std::string text = Output(Job("3"), Golden("burst_exit", {"200000", "5"}));
  EXPECT_EQ(text.size(), 200000u * 13);
  EXPECT_EQ(text.substr(text.size() - 13), "line 0199999\n");
  EXPECT_EQ(RankOf(WaitEnd(Job("3")), 0).exit().code(), 5);
}

TEST_F(StreamsE2e, TwoStreamsStayApart) {
  const std::string out = Output(Job("4"), Golden("two_threads", {"20000"}));
  const auto err = client_->WaitLog(0, v1::STREAM_STDERR, 5s);
  ASSERT_TRUE(err);
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 20000);
  EXPECT_EQ(std::count(err->begin(), err->end(), '\n'), 20000);
}

TEST_F(StreamsE2e, HalfLineIsThereAtOnce) {
  Launch(Job("5"), Golden("half_line", {"3"}));
  EXPECT_TRUE(client_->WaitText(0, v1::STREAM_STDOUT, "loading weights ...", 2s));
  WaitEnd(Job("5"));
}

TEST_F(StreamsE2e, WriteTimesAreTheRanksOwn) {
  Launch(Job("6"), {"/bin/sh", "-c", "echo one; sleep 0.3; echo two"});
  WaitEnd(Job("6"));
  ASSERT_TRUE(client_->WaitLog(0, v1::STREAM_STDOUT, 5s));
  const auto times = client_->Times(0, v1::STREAM_STDOUT);
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].offset(), 0u);
  EXPECT_EQ(times[1].offset(), 4u);
  const int64_t gap = times[1].realtime_ns() - times[0].realtime_ns();
  EXPECT_GT(gap, 290'000'000);
  EXPECT_LT(gap, 600'000'000);
}

TEST_F(StreamsE2e, LatencyIsBelowAHundredMilliseconds) {
  Launch(
      Job("7"),
      {"/usr/bin/python3", "-uc",
       "import time\nfor i in range(10):\n  time.sleep(0.2); print(time.time_ns(), flush=True)"});
  std::vector<int64_t> late;
  for (int line = 1; line <= 10; ++line) {
    while (true) {
      const std::string text = client_->LogSoFar(0, v1::STREAM_STDOUT);
      if (std::count(text.begin(), text.end(), '\n') >= line) {
        const size_t begin = text.rfind('\n', text.size() - 2);
        const int64_t written = std::stoll(text.substr(begin == std::string::npos ? 0 : begin + 1));
        late.push_back(std::chrono::system_clock::now().time_since_epoch().count() - written);
        break;
      }
      std::this_thread::sleep_for(2ms);
    }
  }
  std::sort(late.begin(), late.end());
  EXPECT_LT(late[5], 100'000'000) << "median latency in ns";
  WaitEnd(Job("7"));
}

TEST_F(StreamsE2e, EventsComeThroughTheirOwnPipe) {
  Launch(Job("8"),
         {"/bin/sh", "-c", "echo '{\"event\":\"step\",\"n\":1}' >&$MUSTER_EVENT_FD; echo out"});
  WaitEnd(Job("8"));
  EXPECT_EQ(client_->WaitLog(0, v1::STREAM_EVENTS, 5s), "{\"event\":\"step\",\"n\":1}\n");
  EXPECT_EQ(client_->WaitLog(0, v1::STREAM_STDOUT, 5s), "out\n");
}

TEST_F(StreamsE2e, ArgumentsAreByteExact) {
  const std::vector<std::string> arguments = {
      "a b", "", "'\"$HOME\\", "x\ny", "{\"k\":[1]}", "\xff\xfe", std::string(100000, 'z')};
  const auto json = nlohmann::json::parse(Output(Job("9"), Golden("argv_json", arguments)));
  ASSERT_EQ(json["argc"], arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string hex;
    for (const unsigned char c : arguments[i]) {
      char digits[3];
      std::snprintf(digits, sizeof digits, "%02x", c);
      hex += digits;
    }
    EXPECT_EQ(json["hex"][i], hex);
  }
}

TEST_F(StreamsE2e, StdinIsAtItsEnd) {
  EXPECT_NE(Output(Job("10"), Golden("read_stdin")).find('0'), std::string::npos);
}

TEST_F(StreamsE2e, ARankInheritsACleanWorld) {
  v1::Desired wish = Prepare(Job("11"), Golden("env_json", {"--all"}));
  const auto set = [&](const std::string& name, const std::string& value) {
    v1::EnvVar* variable = wish.mutable_ranks(0)->add_env();
    variable->set_name(name);
    variable->set_value(value);
  };
  set("MASTER_ADDR", "127.0.0.1");
  set("MUSTER_ATTEMPT", "forged");
  set("LANG", "tlh");
  wish.mutable_ranks(0)->set_working_dir("/usr");
  LaunchSpec(wish);
  WaitEnd(Job("11"));
  const auto json = nlohmann::json::parse(*client_->WaitLog(0, v1::STREAM_STDOUT, 5s));
  EXPECT_EQ(json["cwd"], "/usr");
  EXPECT_EQ(json["pid"], json["pgid"]);
  EXPECT_EQ(json["pid"], json["sid"]);
  EXPECT_EQ(json["tty"], false);
  EXPECT_EQ(json["status"]["SigBlk"].get<std::string>().find_first_not_of('0'), std::string::npos);
  const auto ignored = std::stoull(json["status"]["SigIgn"].get<std::string>(), nullptr, 16);
  EXPECT_EQ(ignored & ~((1ull << 12) | (1ull << 24)),
            0u);  // Python itself ignores SIGPIPE and SIGXFSZ
  // 0, 1, 2, the event pipe, and the folder that the program reads to find out.
  EXPECT_LE(json["fds"].size(), 5u);
  EXPECT_EQ(json["fds"]["0"], "/dev/null");
  EXPECT_EQ(json["limits"]["NOFILE"][0], json["limits"]["NOFILE"][1]);
  EXPECT_EQ(json["limits"]["MEMLOCK"][0], json["limits"]["MEMLOCK"][1]);
  const auto& env = json["env"];
  EXPECT_EQ(env["RANK"], "0");
  EXPECT_EQ(env["MASTER_ADDR"], "127.0.0.1");
  EXPECT_EQ(env["LANG"], "tlh");
  EXPECT_EQ(env["MUSTER_EVENT_FD"], "3");
  EXPECT_EQ(env["MUSTER_ATTEMPT"].get<std::string>().rfind(controller_ + "/11/0@", 0), 0u);
  EXPECT_EQ(env["TORCHELASTIC_ERROR_FILE"], RankFile(Job("11"), 0, "error.json"));
  EXPECT_FALSE(
      env.contains("MUSTER_GOLDEN"));  // of the test itself: not part of the base environment
}

TEST_F(StreamsE2e, WindowBoundsWhatIsUnderWay) {
  Connect(/*acknowledge=*/false);
  Launch(Job("12"), Golden("flood", {"12"}));
  WaitEnd(Job("12"), 30s);
  std::this_thread::sleep_for(500ms);
  EXPECT_GE(client_->BytesReceived(), 4u << 20);
  EXPECT_LE(client_->BytesReceived(), (4u << 20) + (256u << 10));
  // A new stream starts where nothing was acknowledged: at the beginning; with acks all comes.
  Connect();
  const auto log = client_->WaitLog(0, v1::STREAM_STDOUT, 20s);
  ASSERT_TRUE(log);
  EXPECT_EQ(log->size(), 12u << 20);
}

}  // namespace
}  // namespace muster::testing
