#include "controller/logs/file_registry.h"

#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "controller/logs/growth.h"
#include "controller/logs/layout.h"
#include "tests/logs/attempt.h"
#include "tests/logs/file_size_limit.h"
#include "tests/logs/temp_dir.h"

namespace muster::logs {
namespace {

namespace fs = std::filesystem;

class RegistryTest : public testing::Test {
 protected:
  RegistryTest() { Restart(); }

  void Restart() {
    registry_.reset();
    complete_.reset(new absl::Notification);
    registry_ = FileRegistry::Make(QuickOptions());
    registry_->SetCompleteCallback(
        [done = complete_.get()](const v1::AttemptId& /*id*/) { done->Notify(); });
    registry_->SetErrorCallback([this](const v1::AttemptId& /*id*/, const absl::Status& status) {
      absl::MutexLock lock(&mutex_);
      errors_.push_back(status);
    });
    ASSERT_TRUE(registry_->Open(files_).ok());
  }
  void Send(uint32_t rank, v1::Stream stream, uint64_t offset, const std::string& data,
            bool end = false) {
    registry_->OnLog(HostOf(files_, rank), MakeChunk(files_, rank, stream, offset, data, end),
                     acks_.Callback());
  }
  std::string Content(uint32_t rank, v1::Stream stream) const {
    return ReadFile(RankDir(dir_.path(), 0, rank) + "/" + LogName(stream));
  }
  // Ends everything that has not ended.
  void EndAll(uint32_t ranks, const std::vector<std::pair<uint32_t, v1::Stream>>& but = {}) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      for (const v1::Stream stream : kStreams) {
        if (std::find(but.begin(), but.end(), std::make_pair(rank, stream)) != but.end()) continue;
        Send(rank, stream, Content(rank, stream).size(), "", true);
      }
    }
  }

  TempDir dir_;
  AttemptFiles files_ = MakeAttempt(dir_.path(), 2, 2);
  Acks acks_;
  std::unique_ptr<absl::Notification> complete_;
  absl::Mutex mutex_;
  std::vector<absl::Status> errors_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<FileRegistry> registry_;  // last: calls back into the others
};

TEST_F(RegistryTest, MakesTheTreeAtOnce) {
  EXPECT_TRUE(fs::exists(dir_.File("ranks/attempt_0/3/stdout.log")));
  EXPECT_TRUE(fs::exists(dir_.File("tiny.log.0.127.0.0.2")));
  EXPECT_TRUE(fs::exists(dir_.File("tiny.log.1.127.0.0.3")));
  EXPECT_EQ(fs::canonical(dir_.File("7_127.0.0.3/attempt_0/1")),
            fs::canonical(dir_.File("ranks/attempt_0/3")));
  EXPECT_TRUE(registry_->Open(files_).ok());
}

TEST_F(RegistryTest, AcknowledgesWhatIsDurable) {
  Send(1, v1::STREAM_STDOUT, 0, "hello\nwor");
  EXPECT_TRUE(acks_.WaitFor(1, v1::STREAM_STDOUT, 9));
  Send(1, v1::STREAM_STDOUT, 9, "ld\n");
  EXPECT_TRUE(acks_.WaitFor(1, v1::STREAM_STDOUT, 12));
  EXPECT_EQ(Content(1, v1::STREAM_STDOUT), "hello\nworld\n");
  EXPECT_EQ(ReadFile(dir_.File("tiny.log.0.127.0.0.2")), "1 out | hello\n1 out | world\n");
  EXPECT_FALSE(registry_->Complete(files_.id));
}

TEST_F(RegistryTest, ARepeatedChunkIsAnsweredAgain) {
  Send(0, v1::STREAM_STDERR, 0, "x\n");
  ASSERT_TRUE(acks_.WaitFor(0, v1::STREAM_STDERR, 2));
  const size_t before = acks_.All().size();
  Send(0, v1::STREAM_STDERR, 0, "x\n");
  EXPECT_TRUE(acks_.WaitForCount(before + 1));
  EXPECT_EQ(acks_.All().back().offset(), 2u);
}

TEST_F(RegistryTest, AGapIsRefusedAndAskedFor) {
  Send(0, v1::STREAM_STDOUT, 0, "ab");
  ASSERT_TRUE(acks_.WaitFor(0, v1::STREAM_STDOUT, 2));
  const size_t before = acks_.All().size();
  Send(0, v1::STREAM_STDOUT, 5, "fg");
  ASSERT_TRUE(acks_.WaitForCount(before + 2)) << "asked again until it comes";
  EXPECT_EQ(acks_.All().back().offset(), 2u);
  EXPECT_EQ(Content(0, v1::STREAM_STDOUT), "ab");
  Send(0, v1::STREAM_STDOUT, 2, "cde");
  EXPECT_TRUE(acks_.WaitFor(0, v1::STREAM_STDOUT, 5));
}

TEST_F(RegistryTest, UnknownThingsAreLeftAlone) {
  v1::LogChunk other = MakeChunk(files_, 0, v1::STREAM_STDOUT, 0, "x");
  other.mutable_id()->set_job_id("8");
  registry_->OnLog("127.0.0.2", other, acks_.Callback());
  registry_->OnLog("127.0.0.2", MakeChunk(files_, 99, v1::STREAM_STDOUT, 0, "x"), acks_.Callback());
  registry_->OnLog("127.0.0.2", MakeChunk(files_, 0, v1::STREAM_UNSPECIFIED, 0, "x"),
                   acks_.Callback());
  // Rank 3 runs on the other host.
  registry_->OnLog("127.0.0.2", MakeChunk(files_, 3, v1::STREAM_STDOUT, 0, "x"), acks_.Callback());
  Send(0, v1::STREAM_STDOUT, 0, "y");
  EXPECT_TRUE(acks_.WaitFor(0, v1::STREAM_STDOUT, 1));
  EXPECT_EQ(acks_.All().size(), 1u);
}

TEST_F(RegistryTest, CompletesWhenEveryStreamHasItsEnd) {
  Send(0, v1::STREAM_STDOUT, 0, "last words");
  EndAll(4, {{2, v1::STREAM_EVENTS}});
  ASSERT_TRUE(acks_.WaitFor(3, v1::STREAM_STDERR, 0, true));
  EXPECT_FALSE(registry_->Complete(files_.id));
  Send(2, v1::STREAM_EVENTS, 0, "{}\n", true);
  ASSERT_TRUE(complete_->WaitForNotificationWithTimeout(absl::Seconds(10)));
  EXPECT_TRUE(registry_->Complete(files_.id));
  EXPECT_EQ(ReadFile(dir_.File("tiny.log.0.127.0.0.2")), "0 out + last words\n");
  EXPECT_EQ(Content(2, v1::STREAM_EVENTS), "{}\n");
}

TEST_F(RegistryTest, ACompleteAttemptIsCompleteAfterARestartToo) {
  Send(0, v1::STREAM_STDOUT, 0, "x\n");
  EndAll(4);
  ASSERT_TRUE(complete_->WaitForNotificationWithTimeout(absl::Seconds(10)));
  Restart();
  ASSERT_TRUE(complete_->WaitForNotificationWithTimeout(absl::Seconds(10)));
  // A node that missed the last ack sends again.
  Send(0, v1::STREAM_STDOUT, 0, "x\n", true);
  EXPECT_TRUE(acks_.WaitFor(0, v1::STREAM_STDOUT, 2, true));
}

TEST_F(RegistryTest, AnAbandonedNodeCountsAsComplete) {
  EndAll(2);
  registry_->AbandonNode(files_.id, "127.0.0.3");
  ASSERT_TRUE(complete_->WaitForNotificationWithTimeout(absl::Seconds(10)));
  Restart();
  EXPECT_TRUE(complete_->WaitForNotificationWithTimeout(absl::Seconds(10)));
}

TEST_F(RegistryTest, BytesAfterTheEndAreAnError) {
  Send(0, v1::STREAM_STDOUT, 0, "x", true);
  ASSERT_TRUE(acks_.WaitFor(0, v1::STREAM_STDOUT, 1, true));
  Send(0, v1::STREAM_STDOUT, 1, "y");
  EXPECT_EQ(Content(0, v1::STREAM_STDOUT), "x");
  absl::MutexLock lock(&mutex_);
  ASSERT_EQ(errors_.size(), 1u);
  EXPECT_NE(errors_[0].message().find("after the end"), std::string::npos);
}

// A full disk: what got through is acknowledged, the rest is asked for until there is room, and the
// owner is told once.
TEST_F(RegistryTest, AFullDiskIsReportedOnceAndHeals) {
  const std::string data = LongLine(79);
  {
    const FileSizeLimit limit(50);
    Send(0, v1::STREAM_STDOUT, 0, data);
    ASSERT_TRUE(acks_.WaitFor(0, v1::STREAM_STDOUT, 50));
    Send(0, v1::STREAM_STDOUT, 50, data.substr(50));
    ASSERT_TRUE(acks_.WaitForCount(3)) << "asks again";
    EXPECT_EQ(acks_.All().back().offset(), 50u);
    absl::MutexLock lock(&mutex_);
    ASSERT_EQ(errors_.size(), 1u);
    EXPECT_NE(errors_[0].message().find("stdout.log: File too large"), std::string::npos);
  }
  Send(0, v1::STREAM_STDOUT, 50, data.substr(50));
  ASSERT_TRUE(acks_.WaitFor(0, v1::STREAM_STDOUT, 80));
  EXPECT_EQ(Content(0, v1::STREAM_STDOUT), data);
  EXPECT_EQ(ReadFile(dir_.File("tiny.log.0.127.0.0.2")), "0 out | " + data);
  absl::MutexLock lock(&mutex_);
  ASSERT_EQ(errors_.size(), 2u);
  EXPECT_TRUE(errors_[1].ok());
}

// Only the journal can't be written: the node sends the end again with each answer, which must
// neither heal the fault in the reports nor make the two answer each other without a pause.
TEST_F(RegistryTest, AnEndThatCannotBeRecordedIsReportedOnceAndAskedForAtIntervals) {
  std::atomic<int> sent{0};
  const std::function<void(const v1::LogAck&)> send_again = [&](const v1::LogAck& ack) {
    if (ack.end() || ++sent > 1000) return;
    registry_->OnLog(HostOf(files_, 0), MakeChunk(files_, 0, v1::STREAM_EVENTS, 0, "", true),
                     send_again);
  };
  Send(0, v1::STREAM_STDOUT, 0, "", true);
  ASSERT_TRUE(acks_.WaitFor(0, v1::STREAM_STDOUT, 0, true));
  {
    const FileSizeLimit limit(16);  // the header of `.times`, and one line of the journal
    v1::LogAck first;
    send_again(first);
    absl::SleepFor(absl::Milliseconds(300));  // room for 15 intervals
    EXPECT_GT(sent, 2) << "asks again";
    EXPECT_LT(sent, 20);
    absl::MutexLock lock(&mutex_);
    ASSERT_EQ(errors_.size(), 1u);
    EXPECT_NE(errors_[0].message().find("streams.journal: File too large"), std::string::npos);
  }
  EndAll(4);
  ASSERT_TRUE(complete_->WaitForNotificationWithTimeout(absl::Seconds(10)));
}

// The merged file can't grow while the streams can: they are acknowledged, and it catches up later.
TEST_F(RegistryTest, TheMergedFileNeverHoldsUpAStream) {
  {
    const FileSizeLimit limit(50);
    Send(0, v1::STREAM_STDOUT, 0, LongLine(44));
    ASSERT_TRUE(acks_.WaitFor(0, v1::STREAM_STDOUT, 45));
    absl::MutexLock lock(&mutex_);
    ASSERT_EQ(errors_.size(), 1u);
    EXPECT_NE(errors_[0].message().find("tiny.log.0"), std::string::npos);
  }
  EndAll(4);
  ASSERT_TRUE(complete_->WaitForNotificationWithTimeout(absl::Seconds(10)));
  EXPECT_EQ(ReadFile(dir_.File("tiny.log.0.127.0.0.2")), "0 out | " + LongLine(44));
}

TEST_F(RegistryTest, AnOutputFolderThatCannotBeWrittenIsAnErrorOfOpen) {
  WriteFile(dir_.File("file"), "");
  files_.output_dir = dir_.File("file");
  files_.id.set_job_id("9");
  const absl::Status status = registry_->Open(files_);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find(dir_.File("file")), std::string::npos) << status;
}

TEST_F(RegistryTest, FilesBelongToTheSubmitter) {
  if (geteuid() != 0) GTEST_SKIP() << "only root writes for others";
  ASSERT_EQ(chown(dir_.path().c_str(), 12345, 23456), 0);
  files_.uid = 12345;
  files_.gid = 23456;
  files_.id.set_job_id("10");
  files_.id.set_attempt(1);
  std::filesystem::remove_all(dir_.File("ranks"));  // made by root for the other attempt
  ASSERT_TRUE(registry_->Open(files_).ok());
  Send(0, v1::STREAM_STDOUT, 0, "x\n");
  ASSERT_TRUE(acks_.WaitFor(0, v1::STREAM_STDOUT, 2));
  for (const char* name : {"ranks/attempt_1", "ranks/attempt_1/0/stdout.log",
                           "ranks/attempt_1/0/stdout.times", "ranks/attempt_1/streams.journal",
                           "tiny.log.0.127.0.0.2.attempt_1", "10_127.0.0.2/attempt_1/0"}) {
    struct stat info {};
    ASSERT_EQ(lstat(dir_.File(name).c_str(), &info), 0) << name;
    EXPECT_EQ(info.st_uid, 12345u) << name;
    EXPECT_EQ(info.st_gid, 23456u) << name;
  }
}

// More streams than files may be open, each written by its node's thread, in pieces, with repeats.
TEST_F(RegistryTest, ManyRanksFromManyThreads) {
  TempDir dir;
  AttemptFiles big = MakeAttempt(dir.path(), 8, 33);
  big.id.set_job_id("big");
  ASSERT_TRUE(registry_->Open(big).ok());
  std::vector<std::thread> nodes;
  for (uint32_t node = 0; node < 8; ++node) {
    nodes.emplace_back([&, node] {
      for (int line = 0; line < 10; ++line) {
        for (uint32_t rank = node * 33; rank < node * 33 + 33; ++rank) {
          const std::string text = "rank " + std::to_string(1000 + rank) + "\n";
          const auto offset = static_cast<uint64_t>(line) * text.size();
          for (int repeat = 0; repeat < 1 + line % 2; ++repeat) {
            registry_->OnLog(HostOf(big, rank),
                             MakeChunk(big, rank, v1::STREAM_STDOUT, offset, text, line == 9),
                             acks_.Callback());
          }
        }
      }
    });
  }
  for (std::thread& node : nodes) node.join();
  for (uint32_t rank = 0; rank < 264; ++rank) {
    ASSERT_TRUE(acks_.WaitFor(rank, v1::STREAM_STDOUT, 100, true)) << rank;
    const std::string line = "rank " + std::to_string(1000 + rank) + "\n";
    std::string whole;
    for (int i = 0; i < 10; ++i) whole += line;
    EXPECT_EQ(ReadFile(RankDir(dir.path(), 0, rank) + "/stdout.log"), whole);
  }
  const std::string merged = ReadFile(MergedPath(dir.path(), big.plan, 3, 0));
  EXPECT_EQ(std::count(merged.begin(), merged.end(), '\n'), 330);
}

v1::LogChunk Lossy(const AttemptFiles& files, uint64_t offset, const std::string& data,
                   uint64_t lost) {
  v1::LogChunk chunk = MakeChunk(files, 0, v1::STREAM_STDOUT, offset, data);
  chunk.set_lost(lost);
  v1::WriteTime& time = *chunk.add_times();
  time.set_offset(offset);
  time.set_realtime_ns(77);
  return chunk;
}

const char kMarker[] =
    "[muster: 100 bytes of this output were lost here: dropped on its node, the log quota was "
    "full]\n";

TEST_F(RegistryTest, AMarkerStandsForWhatTheNodeHasDropped) {
  Send(0, v1::STREAM_STDOUT, 0, "be");
  registry_->OnLog(HostOf(files_, 0), Lossy(files_, 102, "fore\nafter\n", 100), acks_.Callback());
  ASSERT_TRUE(acks_.WaitFor(0, v1::STREAM_STDOUT, 113));
  const std::string expected = std::string("be\n") + kMarker + "fore\nafter\n";
  EXPECT_EQ(Content(0, v1::STREAM_STDOUT), expected);
  EXPECT_EQ(acks_.All().back().lost(), 100U);
  // Sent again, with what the controller had got in time counted as lost: nothing changes.
  registry_->OnLog(HostOf(files_, 0), Lossy(files_, 102, "fore\nafter\n", 102), acks_.Callback());
  Send(0, v1::STREAM_STDOUT, 109, "ter\nmore\n");
  ASSERT_TRUE(acks_.WaitFor(0, v1::STREAM_STDOUT, 118));
  EXPECT_EQ(Content(0, v1::STREAM_STDOUT), expected + "more\n");
  {
    absl::MutexLock lock(&mutex_);
    ASSERT_EQ(errors_.size(), 1U);
    EXPECT_NE(errors_[0].message().find("100 bytes are lost: dropped on the node"),
              std::string::npos);
  }
  // A restarted controller still tells file and stream apart.
  Restart();
  Send(0, v1::STREAM_STDOUT, 118, "end\n", true);
  ASSERT_TRUE(acks_.WaitFor(0, v1::STREAM_STDOUT, 122, true));
  EXPECT_EQ(Content(0, v1::STREAM_STDOUT), expected + "more\nend\n");
}

TEST_F(RegistryTest, AGapThatNobodyToldIsStillRefused) {
  Send(0, v1::STREAM_STDOUT, 0, "be");
  registry_->OnLog(HostOf(files_, 0), Lossy(files_, 103, "x", 100), acks_.Callback());
  ASSERT_TRUE(acks_.WaitFor(0, v1::STREAM_STDOUT, 2));
  EXPECT_EQ(Content(0, v1::STREAM_STDOUT), "be");
}

TEST_F(RegistryTest, ATornMarkerIsCutOffAndWrittenAgain) {
  Send(0, v1::STREAM_STDOUT, 0, "one\n");
  registry_->OnLog(HostOf(files_, 0), Lossy(files_, 104, "two\n", 100), acks_.Callback());
  ASSERT_TRUE(acks_.WaitFor(0, v1::STREAM_STDOUT, 108));
  registry_.reset();
  const std::string log = RankDir(dir_.path(), 0, 0) + "/stdout.log";
  fs::resize_file(log, 20);
  Restart();
  Send(0, v1::STREAM_STDOUT, 0, "one\n");
  registry_->OnLog(HostOf(files_, 0), Lossy(files_, 104, "two\n", 100), acks_.Callback());
  ASSERT_TRUE(acks_.WaitFor(0, v1::STREAM_STDOUT, 108));
  EXPECT_EQ(Content(0, v1::STREAM_STDOUT), std::string("one\n") + kMarker + "two\n");
}

}  // namespace
}  // namespace muster::logs
