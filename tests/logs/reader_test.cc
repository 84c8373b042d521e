#include "controller/logs/reader.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "controller/logs/layout.h"
#include "controller/logs/stream_file.h"
#include "tests/logs/attempt.h"
#include "tests/logs/temp_dir.h"

namespace muster::logs {
namespace {

using std::chrono::milliseconds;

class ReaderTest : public testing::Test {
 protected:
  // Appends to a rank's stream what it wrote at `time`.
  void Write(uint32_t rank, int64_t time, const std::string& text,
             v1::Stream stream = v1::STREAM_STDOUT) {
    auto& file = streams_[{rank, stream}];
    if (!file) {
      const std::string folder = RankDir(dir_.path(), 0, rank);
      std::filesystem::create_directories(folder);
      file = std::make_unique<StreamFile>(folder, stream, rotation_, open_);
      ASSERT_TRUE(file->Recover().ok());
    }
    ASSERT_TRUE(file->Append(file->size(), text, {{file->size(), time}}).ok());
    growth_.SetSize(rank * kNumStreams + StreamIndex(stream), file->size());
  }
  std::unique_ptr<Reader> Make(const v1::LogsRequest& request = {}) {
    auto reader = Reader::Make(dir_.path(), 0, files_.plan, request);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return *std::move(reader);
  }
  // All that is there now, as "rank:text".
  std::vector<std::string> Drain(Reader& reader) {
    std::vector<std::string> out;
    while (true) {
      auto run = reader.Next(now_);
      EXPECT_TRUE(run.ok()) << run.status();
      if (!run.ok() || !*run) return out;
      out.push_back(std::to_string((*run)->rank()) + ":" + (*run)->data());
    }
  }
  std::vector<std::string> ReadAll(const v1::LogsRequest& request = {}) {
    auto reader = Make(request);
    EXPECT_TRUE(reader->ExtendFromFiles(true).ok());
    return Drain(*reader);
  }

  TempDir dir_;
  const AttemptFiles files_ = MakeAttempt(dir_.path(), 2, 2);
  Rotation rotation_;
  OpenFiles open_{0};
  Growth growth_{4};
  std::map<std::pair<uint32_t, v1::Stream>, std::unique_ptr<StreamFile>> streams_;
  Reader::TimePoint now_{};
};

using Runs = std::vector<std::string>;

TEST_F(ReaderTest, MergesByTheTimeOfWriting) {
  Write(0, 10, "a\n");
  Write(0, 30, "c\n");
  Write(3, 20, "b\n");
  Write(3, 40, "d\n", v1::STREAM_STDERR);
  EXPECT_EQ(ReadAll(), (Runs{"0:a\n", "3:b\n", "0:c\n", "3:d\n"}));
}

TEST_F(ReaderTest, LinesOfOneStreamTravelTogether) {
  Write(0, 10, "a\nb\n");
  Write(0, 11, "c\n");
  Write(1, 12, "x\n");
  Write(0, 13, "d\n");
  EXPECT_EQ(ReadAll(), (Runs{"0:a\nb\nc\n", "1:x\n", "0:d\n"}));
}

TEST_F(ReaderTest, ALineWrittenInPiecesStaysWhole) {
  Write(0, 10, "beg");
  Write(1, 20, "x\n");
  Write(0, 30, "in\n");
  EXPECT_EQ(ReadAll(), (Runs{"0:begin\n", "1:x\n"}));
}

TEST_F(ReaderTest, ClocksThatJumpBackDoNotReorderAStream) {
  Write(0, 50, "a\n");
  Write(0, 10, "b\n");
  Write(1, 40, "x\n");
  EXPECT_EQ(ReadAll(), (Runs{"1:x\n", "0:a\nb\n"}));
}

TEST_F(ReaderTest, TellsOffsetsAndTimes) {
  Write(0, 10, "a\nb\n");
  auto reader = Make();
  ASSERT_TRUE(reader->ExtendFromFiles(true).ok());
  const auto run = **reader->Next(now_);
  EXPECT_EQ(run.offset(), 0u);
  EXPECT_EQ(run.realtime_ns(), 10);
  EXPECT_EQ(run.host(), "127.0.0.2");
  EXPECT_EQ(run.stream(), v1::STREAM_STDOUT);
}

TEST_F(ReaderTest, Filters) {
  Write(0, 10, "a\n");
  Write(1, 20, "b\n", v1::STREAM_STDERR);
  Write(2, 30, "c\n");
  Write(3, 40, "{}\n", v1::STREAM_EVENTS);
  v1::LogsRequest request;
  request.add_ranks(2);
  EXPECT_EQ(ReadAll(request), (Runs{"2:c\n"}));
  request.Clear();
  request.add_hosts("127.0.0.2");
  EXPECT_EQ(ReadAll(request), (Runs{"0:a\n", "1:b\n"}));
  request.add_streams(v1::STREAM_STDERR);
  EXPECT_EQ(ReadAll(request), (Runs{"1:b\n"}));
  request.Clear();
  request.add_streams(v1::STREAM_EVENTS);
  EXPECT_EQ(ReadAll(request), (Runs{"3:{}\n"}));
}

TEST_F(ReaderTest, NamesWhatTheJobHasNot) {
  v1::LogsRequest request;
  request.add_ranks(4);
  EXPECT_EQ(Reader::Make(dir_.path(), 0, files_.plan, request).status().message(),
            "rank 4: the job has ranks 0 to 3");
  request.Clear();
  request.add_hosts("127.0.0.4");
  EXPECT_EQ(Reader::Make(dir_.path(), 0, files_.plan, request).status().message(),
            "host 127.0.0.4 is not one of the job's; did you mean '127.0.0.2'?");
  request.Clear();
  request.add_streams(v1::STREAM_UNSPECIFIED);
  EXPECT_TRUE(absl::IsInvalidArgument(Reader::Make(dir_.path(), 0, files_.plan, request).status()));
}

TEST_F(ReaderTest, TailCountsLinesOfEachStream) {
  Write(0, 10, "1\n2\n3\n");
  Write(1, 20, "only\n");
  Write(2, 30, "x\nunfinished");
  v1::LogsRequest request;
  request.set_tail_lines(2);
  EXPECT_EQ(ReadAll(request), (Runs{"0:2\n3\n", "1:only\n", "2:x\n", "2:unfinished"}));
  request.set_tail_lines(0);
  EXPECT_EQ(ReadAll(request), Runs{});
}

TEST_F(ReaderTest, TailOfLongLinesLooksFarBack) {
  const std::string line(200'000, 'x');
  Write(0, 10, "first\n" + line + "\n" + line + "\n");
  v1::LogsRequest request;
  request.set_tail_lines(2);
  std::string all;
  for (const std::string& run : ReadAll(request)) all += run.substr(2);
  EXPECT_TRUE(all == line + "\n" + line + "\n");
}

TEST_F(ReaderTest, LongLinesComeInPiecesThatStayTogether) {
  const std::string line(300'000, 'x');
  Write(0, 10, line + "\n");
  Write(1, 5, "before\n");
  Write(1, 11, "after\n");
  const Runs runs = ReadAll();
  ASSERT_GT(runs.size(), 4u);
  EXPECT_EQ(runs.front(), "1:before\n");
  EXPECT_EQ(runs.back(), "1:after\n");
  std::string all;
  for (size_t i = 1; i + 1 < runs.size(); ++i) {
    EXPECT_EQ(runs[i].substr(0, 2), "0:");
    EXPECT_LE(runs[i].size(), StreamCursor::kMaxRun + 2);
    all += runs[i].substr(2);
  }
  EXPECT_TRUE(all == line + "\n");
}

TEST_F(ReaderTest, FollowsAGrowingAttempt) {
  Write(0, 10, "a\n");
  auto reader = Make();
  ASSERT_TRUE(reader->Extend(growth_).ok());
  EXPECT_EQ(Drain(*reader), (Runs{"0:a\n"}));
  EXPECT_EQ(Drain(*reader), Runs{});
  Write(1, 20, "b\n");
  EXPECT_EQ(Drain(*reader), Runs{}) << "not seen before Extend";
  ASSERT_TRUE(reader->Extend(growth_).ok());
  EXPECT_EQ(Drain(*reader), (Runs{"1:b\n"}));
}

TEST_F(ReaderTest, AnUnfinishedLineIsShownWhenItRests) {
  Write(0, 10, "prompt> ");
  auto reader = Make();
  ASSERT_TRUE(reader->Extend(growth_).ok());
  EXPECT_EQ(Drain(*reader), Runs{});
  now_ += StreamCursor::kPartialDelay - milliseconds(1);
  EXPECT_EQ(Drain(*reader), Runs{});
  Write(0, 11, "and ");
  ASSERT_TRUE(reader->Extend(growth_).ok());
  EXPECT_EQ(Drain(*reader), Runs{}) << "it grows: wait again";
  now_ += StreamCursor::kPartialDelay;
  EXPECT_EQ(Drain(*reader), (Runs{"0:prompt> and "}));
  Write(0, 12, "answer\n");
  ASSERT_TRUE(reader->Extend(growth_).ok());
  EXPECT_EQ(Drain(*reader), (Runs{"0:answer\n"}));
}

TEST_F(ReaderTest, AnEndedStreamGivesItsLastPieceAtOnce) {
  Write(0, 10, "no newline");
  growth_.SetEnded(0);
  auto reader = Make();
  ASSERT_TRUE(reader->Extend(growth_).ok());
  EXPECT_EQ(Drain(*reader), (Runs{"0:no newline"}));
}

TEST_F(ReaderTest, WithoutTimesEverythingStillComes) {
  Write(0, 10, "a\nb\n");
  std::filesystem::remove(RankDir(dir_.path(), 0, 0) + "/stdout.times");
  EXPECT_EQ(ReadAll(), (Runs{"0:a\nb\n"}));
}

TEST_F(ReaderTest, MissingFilesAreEmptyStreams) {
  EXPECT_EQ(ReadAll(), Runs{});
}

// Whatever ranks write and in whatever pieces: each stream comes whole and in order, and lines are
// in time order.
TEST_F(ReaderTest, EveryStreamComesWhole) {
  const bool ok = rc::check([this](const std::vector<std::pair<uint8_t, std::string>>& writes) {
    streams_.clear();
    std::filesystem::remove_all(dir_.File("ranks"));
    std::map<std::string, std::string> expected;
    int64_t time = 0;
    for (const auto& [who, text] : writes) {
      const uint32_t rank = who % 4;
      const std::string line = text + (who & 64 ? "\n" : "");
      if (line.empty()) continue;
      Write(rank, ++time, line);
      expected[std::to_string(rank)] += line;
    }
    std::map<std::string, std::string> got;
    for (const std::string& run : ReadAll()) got[run.substr(0, 1)] += run.substr(2);
    RC_ASSERT(got == expected);
  });
  EXPECT_TRUE(ok);
}

TEST_F(ReaderTest, SinceSkipsOlderLines) {
  Write(0, 10, "old\n");
  Write(0, 20, "new\n");
  Write(1, 5, "also old\n");
  v1::LogsRequest request;
  request.set_since_ns(15);
  EXPECT_EQ(ReadAll(request), std::vector<std::string>{"0:new\n"});
}

TEST_F(ReaderTest, SinceBeginsWithAWholeLine) {
  Write(0, 10, "begun before ");
  Write(0, 20, "ended after\nnew\n");
  v1::LogsRequest request;
  request.set_since_ns(15);
  EXPECT_EQ(ReadAll(request), std::vector<std::string>{"0:new\n"});
}

TEST_F(ReaderTest, SinceWaitsForLinesThatAreStillToCome) {
  Write(0, 10, "old\n");
  v1::LogsRequest request;
  request.set_since_ns(15);
  const auto reader = Make(request);
  ASSERT_TRUE(reader->Extend(growth_).ok());
  EXPECT_TRUE(Drain(*reader).empty());
  Write(0, 30, "new\n");
  ASSERT_TRUE(reader->Extend(growth_).ok());
  EXPECT_EQ(Drain(*reader), std::vector<std::string>{"0:new\n"});
}

TEST_F(ReaderTest, TellsTheTimesOfLines) {
  Write(0, 10, "a\nb\n");
  Write(0, 20, "c\n");
  v1::LogsRequest request;
  request.set_times(true);
  const auto reader = Make(request);
  ASSERT_TRUE(reader->ExtendFromFiles(true).ok());
  const auto run = reader->Next(now_);
  ASSERT_TRUE(run.ok() && *run);
  EXPECT_EQ((*run)->realtime_ns(), 10);
  ASSERT_EQ((*run)->times_size(), 1);
  EXPECT_EQ((*run)->times(0).offset(), 4U);
  EXPECT_EQ((*run)->times(0).realtime_ns(), 20);
}

TEST_F(ReaderTest, RanksByTheirCoordinates) {
  AttemptFiles files = files_;
  files.plan.set_tp(2);
  files.plan.set_pp(2);
  for (int rank = 0; rank < 4; ++rank) {
    files.plan.mutable_ranks(rank)->set_tp(static_cast<uint32_t>(rank % 2));
    files.plan.mutable_ranks(rank)->set_pp(static_cast<uint32_t>(rank / 2));
    Write(static_cast<uint32_t>(rank), rank, "x\n");
  }
  v1::LogsRequest request;
  request.add_pp(1);
  request.add_tp(0);
  auto reader = Reader::Make(dir_.path(), 0, files.plan, request);
  ASSERT_TRUE(reader.ok());
  ASSERT_TRUE((*reader)->ExtendFromFiles(true).ok());
  EXPECT_EQ(Drain(**reader), std::vector<std::string>{"2:x\n"});
  request.add_dp(1);
  EXPECT_EQ(Reader::Make(dir_.path(), 0, files.plan, request).status().message(),
            "dp 1: the job has dp 0 only");
}

}  // namespace
}  // namespace muster::logs
