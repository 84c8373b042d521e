#include "controller/cli/log_view.h"

#include <gtest/gtest.h>

#include <random>

namespace muster::cli {
namespace {

using std::chrono::milliseconds;

class LogViewTest : public testing::Test {
 protected:
  explicit LogViewTest(uint32_t world = 12)
      : view_(world, Style(), [this](std::string_view text) { out_ += text; }) {}

  void Write(uint32_t rank, const std::string& data, v1::Stream stream = v1::STREAM_STDOUT) {
    v1::LogsResponse chunk;
    chunk.set_rank(rank);
    chunk.set_stream(stream);
    chunk.set_offset(offsets_[{rank, stream}]);
    chunk.set_data(data);
    offsets_[{rank, stream}] += data.size();
    view_.Append(chunk, now_);
  }
  void Pass(int ms) {
    now_ += milliseconds(ms);
    view_.Tick(now_);
  }

  std::string out_;
  LogView view_;
  LogView::Clock::time_point now_{};
  std::map<std::pair<uint32_t, int>, uint64_t> offsets_;
};

TEST_F(LogViewTest, TagsEveryLineWithItsRankInAFixedWidth) {
  Write(3, "a\nb\n");
  Write(11, "c\n");
  Write(3, "oops\n", v1::STREAM_STDERR);
  EXPECT_EQ(out_, "[ 3] a\n[ 3] b\n[11] c\n[ 3]! oops\n");
}

TEST_F(LogViewTest, NeverMixesLinesOfTwoRanks) {
  Write(0, "half ");
  Write(1, "whole\n");
  Write(0, "line\n");
  EXPECT_EQ(out_, "[ 1] whole\n[ 0] half line\n");
}

TEST_F(LogViewTest, ShowsAHalfLineSoonAndEndsItAsOneLine) {
  Write(0, "loading weights ...");
  EXPECT_EQ(out_, "");
  Pass(250);
  EXPECT_EQ(out_, "[ 0] loading weights ...");
  Write(0, " done\n");
  EXPECT_EQ(out_, "[ 0] loading weights ... done\n");
}

TEST_F(LogViewTest, RepeatsAHalfLineThatWasInterrupted) {
  Write(0, "loading ...");
  Pass(250);
  Write(1, "hello\n");
  Write(0, " done\n");
  EXPECT_EQ(out_, "[ 0] loading ...\n[ 1] hello\n[ 0] loading ... done\n");
}

TEST_F(LogViewTest, AProgressBarIsOneLineInItsNewestState) {
  for (int i = 0; i <= 100; ++i) {
    Write(0, "\r" + std::to_string(i) + "%");
    Pass(20);
  }
  Write(0, "\n");
  EXPECT_EQ(out_.substr(out_.rfind('\r') + 1), "[ 0] 100%\n");
  EXPECT_EQ(std::count(out_.begin(), out_.end(), '\n'), 1);
}

TEST_F(LogViewTest, WindowsLineEndsAreLineEnds) {
  Write(0, "a\r\nb\r\n");
  EXPECT_EQ(out_, "[ 0] a\n[ 0] b\n");
}

TEST_F(LogViewTest, BinaryDataIsShownWholeAlsoAroundCr) {
  Write(0, std::string("\x0b\x0c\rx\0y\n", 7));
  EXPECT_EQ(out_, "[ 0] \\x0b\\x0c\\x0dx\\x00y\n");
}

TEST_F(LogViewTest, CutsEndlessLines) {
  Write(0, std::string(200'000, 'x'));
  view_.Finish();
  EXPECT_EQ(std::count(out_.begin(), out_.end(), '\n'), 4);
  EXPECT_EQ(std::count(out_.begin(), out_.end(), 'x'), 200'000);
}

TEST_F(LogViewTest, SkipsBytesThatWereShownBefore) {
  Write(0, "one\ntw");
  offsets_[{0, v1::STREAM_STDOUT}] = 0;  // a new connection begins again
  Write(0, "one\ntwo\nthree\n");
  EXPECT_EQ(out_, "[ 0] one\n[ 0] two\n[ 0] three\n");
}

TEST_F(LogViewTest, FinishEndsWhatHasNoNewline) {
  Write(0, "the end");
  Write(1, "also");
  view_.Finish();
  EXPECT_EQ(out_, "[ 0] the end\n[ 1] also\n");
}

TEST_F(LogViewTest, OwnMessagesDoNotCutLines) {
  Write(0, "half");
  Pass(250);
  view_.Message("muster: running");
  Write(0, " whole\n");
  EXPECT_EQ(out_, "[ 0] half\nmuster: running\n[ 0] half whole\n");
}

// Whatever the cuts between chunks: all complete lines come out, in order, once.
TEST_F(LogViewTest, LosesNothingWhateverTheCuts) {
  std::mt19937 random(3);
  std::string all;
  for (int i = 0; i < 500; ++i) all += "line " + std::to_string(i) + "\n";
  for (size_t at = 0; at < all.size();) {
    const size_t size = 1 + random() % 30;
    Write(5, all.substr(at, size));
    at += size;
  }
  std::string expected;
  for (int i = 0; i < 500; ++i) expected += "[ 5] line " + std::to_string(i) + "\n";
  EXPECT_EQ(out_, expected);
}

}  // namespace
}  // namespace muster::cli
