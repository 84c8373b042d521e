// Parts of the shim: pumps, program search, rank environment.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/times_format.h"
#include "tests/logs/file_size_limit.h"
#include "tests/worker/worker_testing.h"
#include "worker/ranks/rank_folder.h"
#include "worker/shim/frame.h"
#include "worker/shim/program_path.h"
#include "worker/shim/rank_child.h"
#include "worker/shim/stream_pump.h"

namespace muster::shim {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Pair;

class PumpTest : public ::testing::Test {
 protected:
  PumpTest() {
    int fds[2];
    EXPECT_EQ(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
    reader_ = UniqueFd(fds[0]);
    writer_ = UniqueFd(fds[1]);
  }
  void Write(const std::string& text) {
    ASSERT_EQ(write(writer_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  std::string Read(const std::string& path) {
    std::string error;
    return ReadWholeFile(path, 1 << 20, error).value_or("?");
  }
  testing::TempDir dir_;
  FakeClock clock_;
  UniqueFd reader_;
  UniqueFd writer_;
};

TEST_F(PumpTest, BytesAndTimes) {
  const std::string log = dir_.path() + "/log";
  const std::string times = dir_.path() + "/times";
  StreamPump pump({.log = log, .times = times, .quota = {}}, clock_);
  pump.Attach(std::move(reader_));
  const int64_t begin = clock_.RealtimeNs();
  Write("one");
  EXPECT_TRUE(pump.Pump());
  clock_.Advance(std::chrono::microseconds(500));
  Write("two");  // within a millisecond: no time of its own
  pump.Pump();
  clock_.Advance(std::chrono::milliseconds(1));
  Write("three");
  pump.Pump();
  clock_.JumpRealtime(-std::chrono::hours(1));
  Write("four");  // a clock that went back is written down as it is
  pump.Pump();
  EXPECT_FALSE(pump.Pump());
  writer_.reset();
  pump.Pump();
  EXPECT_FALSE(pump.open());
  EXPECT_EQ(Read(log), "onetwothreefour");
  const std::string bytes = Read(times);
  ASSERT_EQ(bytes.size(), kTimesHeaderSize + 3 * kTimesRecordSize);
  EXPECT_TRUE(IsTimesHeader(bytes.data()));
  EXPECT_EQ(DecodeTimesRecord(&bytes[16]), (TimesRecord{0, begin}));
  EXPECT_EQ(DecodeTimesRecord(&bytes[32]), (TimesRecord{6, begin + 1'500'000}));
  EXPECT_EQ(DecodeTimesRecord(&bytes[48]),
            (TimesRecord{11, begin + 1'500'000 - 3'600'000'000'000}));
}

TEST_F(PumpTest, AFullDiskNeverBlocksTheRank) {
  StreamPump pump({.log = "/dev/full", .times = "", .quota = {}}, clock_);
  pump.Attach(std::move(reader_));
  for (int i = 0; i < 10; ++i) {
    Write(std::string(10000, 'x'));
    EXPECT_TRUE(pump.Pump());
  }
  EXPECT_EQ(pump.size(), 0u);
  EXPECT_EQ(pump.lost(), 100000u);
  EXPECT_EQ(pump.error(), "write /dev/full: No space left on device");
}

TEST_F(PumpTest, FilesThatCannotBeMadeAreAnError) {
  StreamPump pump({.log = "/no/such/folder/log", .times = "", .quota = {}}, clock_);
  EXPECT_EQ(pump.error(), "create /no/such/folder/log: No such file or directory");
}

class QuotaTest : public PumpTest {
 protected:
  static constexpr uint64_t kQuota = 64 << 10;

  StreamPump MakePump(bool drop_oldest) {
    EXPECT_TRUE(floors_.Create(dir_.path() + "/floors"));
    return StreamPump({.log = Log(),
                       .times = dir_.path() + "/times",
                       .quota = {kQuota, drop_oldest},
                       .floor = &floors_,
                       .stream = 1},
                      clock_);
  }
  std::string Log() const { return dir_.path() + "/log"; }
  // 4,096 bytes that tell where they were written.
  static std::string Block(int i) {
    std::string block(4096, static_cast<char>('a' + i % 26));
    block.back() = '\n';
    return block;
  }
  uint64_t Blocks() const {
    struct stat info {};
    EXPECT_EQ(stat(Log().c_str(), &info), 0);
    return static_cast<uint64_t>(info.st_blocks) * 512;
  }

  LogFloor floors_;
};

TEST_F(QuotaTest, BlockingLosesNothingAndHoldsNoMoreThanTheQuota) {
  StreamPump pump = MakePump(false);
  pump.Attach(std::move(reader_));
  std::string written;
  int block = 0;
  for (int round = 0; round < 20; ++round) {
    while (!pump.waits()) {
      Write(Block(block));
      written += Block(block++);
      pump.Pump();
    }
    EXPECT_EQ(pump.fd(), -1);
    EXPECT_LE(pump.size() - floors_.Read(1), kQuota);
    pump.Acknowledge(pump.size() - 4096);
    pump.Pump();
    EXPECT_FALSE(pump.waits());
  }
  EXPECT_EQ(pump.lost(), 0U);
  pump.Pump(/*last=*/true);
  const std::string log = Read(Log());
  ASSERT_EQ(log.size(), written.size());
  const uint64_t floor = floors_.Read(1);
  EXPECT_GT(floor, 0U);
  EXPECT_EQ(log.substr(floor), written.substr(floor));
  EXPECT_LE(Blocks(), 2 * kQuota);
}

TEST_F(QuotaTest, DroppingKeepsTheNewestBytesAndNeverWaits) {
  StreamPump pump = MakePump(true);
  pump.Attach(std::move(reader_));
  std::string written;
  for (int block = 0; block < 200; ++block) {
    Write(Block(block));
    written += Block(block);
    pump.Pump();
    EXPECT_FALSE(pump.waits());
  }
  const uint64_t floor = floors_.Read(1);
  const std::string log = Read(Log());
  ASSERT_EQ(log.size(), written.size());
  EXPECT_GE(log.size() - floor, kQuota / 4);
  EXPECT_LE(log.size() - floor, kQuota);
  EXPECT_EQ(log.substr(floor), written.substr(floor));
  EXPECT_EQ(pump.lost(), 0U);  // the controller counts what it never got
}

TEST_F(QuotaTest, WhatIsAcknowledgedStaysUntilItsPlaceIsNeeded) {
  StreamPump pump = MakePump(false);
  pump.Attach(std::move(reader_));
  Write(Block(0));
  pump.Pump();
  pump.Acknowledge(4096);
  EXPECT_EQ(Read(Log()), Block(0));
  EXPECT_EQ(floors_.Read(1), 0U);
}

// Disk space comes back with each acknowledgement, also once bytes were lost.
TEST_F(QuotaTest, AFullDiskTakesOutputAgainWhenTheControllerHasTakenSome) {
  if (mount("tmpfs", dir_.path().c_str(), "tmpfs", 0, "size=256k") != 0) {
    GTEST_SKIP() << "no right to mount";
  }
  {
    EXPECT_TRUE(floors_.Create(dir_.path() + "/floors"));
    StreamPump pump(
        {.log = Log(), .times = "", .quota = {1 << 30, false}, .floor = &floors_, .stream = 1},
        clock_);
    pump.Attach(std::move(reader_));
    for (int block = 0; block < 100; ++block) {
      Write(Block(block));
      pump.Pump();
    }
    const uint64_t lost = pump.lost();
    EXPECT_GT(lost, 0U);
    EXPECT_LT(lost, 400'000U);
    pump.Acknowledge(pump.size());
    Write("after\n");
    pump.Pump();
    EXPECT_EQ(pump.lost(), lost);
    const std::string log = Read(Log());
    EXPECT_NE(log.find("\"lost\",\"bytes\":" + std::to_string(lost) + ","), std::string::npos);
    EXPECT_EQ(log.substr(log.size() - 6), "after\n");
  }
  floors_ = LogFloor();
  EXPECT_EQ(umount(dir_.path().c_str()), 0);
}

TEST_F(QuotaTest, TimesStillTellOfWhatIsLeft) {
  StreamPump pump = MakePump(true);
  pump.Attach(std::move(reader_));
  const int64_t begin = clock_.RealtimeNs();
  for (int block = 0; block < 20'000; ++block) {
    clock_.Advance(std::chrono::milliseconds(1));
    Write("x\n");
    pump.Pump();
  }
  Write(Block(24));
  pump.Pump();
  for (int block = 0; block < 20; ++block) {
    clock_.Advance(std::chrono::milliseconds(1));
    Write(Block(block));
    pump.Pump();
  }
  const uint64_t floor = floors_.Read(1);
  ASSERT_GT(floor, 40'000U);
  const std::string times = Read(dir_.path() + "/times");
  int64_t at_floor = 0;
  for (size_t at = kTimesHeaderSize; at + kTimesRecordSize <= times.size();
       at += kTimesRecordSize) {
    const TimesRecord record = DecodeTimesRecord(&times[at]);
    if (record.offset <= floor && record.realtime_ns != 0) at_floor = record.realtime_ns;
  }
  EXPECT_GT(at_floor, begin + 20'000'000'000);
  EXPECT_TRUE(IsTimesHeader(times.data()));
  EXPECT_EQ(DecodeTimesRecord(&times[kTimesHeaderSize]), (TimesRecord{0, 0}));  // given back
}

TEST(LogFile, AMarkerStandsWhereAFullDiskTookNothing) {
  testing::TempDir dir;
  FakeClock clock;
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
  const UniqueFd writer(fds[1]);
  StreamPump pump({.log = dir.path() + "/log", .times = dir.path() + "/times", .quota = {}}, clock);
  pump.Attach(UniqueFd(fds[0]));
  const auto put = [&](const std::string& text) {
    ASSERT_EQ(write(writer.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    pump.Pump();
  };
  put("half");
  {
    const logs::FileSizeLimit full(64);  // the times are small
    put(std::string(100, 'x'));
    put(std::string(100, 'y'));
  }
  put("after\n");
  EXPECT_EQ(pump.lost(), 140U);
  std::string error;
  const std::string log = ReadWholeFile(dir.path() + "/log", 1 << 20, error).value_or(error);
  std::string expected = "half";
  expected.append(60, 'x');
  expected.append("\n[muster: 140 bytes of this output were lost here: write ");
  expected.append(dir.path()).append("/log: File too large]\nafter\n");
  EXPECT_EQ(log, expected);
}

TEST(ProgramCandidates, SearchesAsExecvp) {
  EXPECT_THAT(ProgramCandidates("train", "/a:/b"), ElementsAre("/a/train", "/b/train"));
  EXPECT_THAT(ProgramCandidates("train", ":/b:"), ElementsAre("./train", "/b/train", "./train"));
  EXPECT_THAT(ProgramCandidates("./train", "/a"), ElementsAre("./train"));
  EXPECT_THAT(ProgramCandidates("/x/train", "/a"), ElementsAre("/x/train"));
}

TEST(StartRank, ExplainsWhyAScriptDoesNotStart) {
  testing::TempDir dir;
  const std::string script = dir.path() + "/script";
  std::ofstream(script) << "#!/no/such/interpreter\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  RankSpec spec;
  spec.argv = {script};
  spec.working_dir = "/";
  const RankChild child = StartRank(spec);
  EXPECT_EQ(child.pid, 0);
  EXPECT_EQ(child.error, "exec " + script +
                             ": No such file or directory (the file exists; the interpreter that "
                             "it names does not)");
  EXPECT_EQ(child.exit_code, 127);
}

TEST(MakeRankSpec, LaterVariablesWinButForTheNodesOwn) {
  v1::Desired wish = testing::Prepare(testing::Id("1"), {"x"});
  const auto set = [&](const std::string& name, const std::string& value) {
    v1::EnvVar* variable = wish.mutable_ranks(0)->add_env();
    variable->set_name(name);
    variable->set_value(value);
  };
  set("PATH", "/theirs");
  set("MUSTER_ATTEMPT", "forged");
  set("MUSTER_EVENT_FD", "9");
  set("TWICE", "1");
  set("TWICE", "2");
  ranks::NodeEnvironment node;
  node.base = {{"PATH", "/ours"}, {"HOME", "/root"}};
  node.marker = "ctl/1/0@tag";
  const RankSpec spec = ranks::MakeRankSpec(wish.ranks(0), node, "/state/0");
  EXPECT_EQ(spec.env[0], (std::pair<std::string, std::string>("MUSTER_ATTEMPT", "ctl/1/0@tag")));
  EXPECT_THAT(spec.env, Contains(Pair("PATH", "/theirs")).Times(1));
  EXPECT_THAT(spec.env, Contains(Pair("HOME", "/root")));
  EXPECT_THAT(spec.env, Contains(Pair("TWICE", "2")).Times(1));
  EXPECT_THAT(spec.env, Contains(Pair("TORCHELASTIC_ERROR_FILE", "/state/0/error.json")));
  EXPECT_THAT(spec.env, Contains(Pair("MUSTER_EVENT_FD", ::testing::_)).Times(0));
}

TEST(BaseEnvironment, IsShort) {
  const char* environment[] = {
      "PATH=/bin", "LC_ALL=C", "SECRET=x", "HOME=", "LANGUAGE=de", "odd", nullptr};
  EXPECT_THAT(ranks::BaseEnvironment(environment),
              ElementsAre(Pair("PATH", "/bin"), Pair("LC_ALL", "C"), Pair("HOME", "")));
}

}  // namespace
}  // namespace muster::shim
