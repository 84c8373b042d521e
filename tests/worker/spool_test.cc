// Chunks by offset: order, windows, times, resending.
#include "worker/spool/log_spool.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "common/times_format.h"
#include "tests/worker/worker_testing.h"

namespace muster::spool {
namespace {

class FakeSink : public ChunkSink {
 public:
  bool Ready() const override { return chunks.size() < limit; }
  void SendChunk(v1::LogChunk chunk) override { chunks.push_back(std::move(chunk)); }
  std::string Text(uint32_t rank, v1::Stream stream) const {
    std::string text;
    for (const auto& chunk : chunks) {
      if (chunk.rank() == rank && chunk.stream() == stream) text += chunk.data();
    }
    return text;
  }
  size_t limit = 10000;
  std::vector<v1::LogChunk> chunks;
};

class SpoolTest : public ::testing::Test {
 protected:
  void Write(uint32_t rank, const std::string& file, const std::string& text) {
    const std::string folder = dir_.path() + "/" + std::to_string(rank);
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/" + file, std::ios::binary | std::ios::app) << text;
  }
  void WriteTimes(uint32_t rank, const std::vector<TimesRecord>& records) {
    const auto header = EncodeTimesHeader();
    std::string bytes(header.begin(), header.end());
    for (const TimesRecord& record : records) {
      const auto encoded = EncodeTimesRecord(record);
      bytes.append(encoded.begin(), encoded.end());
    }
    Write(rank, "stdout.times", bytes);
  }
  bool Ack(uint32_t rank, v1::Stream stream, uint64_t offset, bool end = false) {
    v1::LogAck ack;
    ack.set_rank(rank);
    ack.set_stream(stream);
    ack.set_offset(offset);
    ack.set_end(end);
    return spool_.Ack(ack);
  }
  testing::TempDir dir_;
  FakeSink sink_;
  LogSpool spool_{testing::Id("1"), dir_.path(), worker::AckRecord()};
};

TEST_F(SpoolTest, SendsGrowthOnceAndTheEndOnlyWhenComplete) {
  Write(0, "stdout.log", "hello ");
  spool_.Grow(0, 0, 6, false);
  spool_.Pump(sink_);
  spool_.Pump(sink_);
  Write(0, "stdout.log", "world");
  spool_.Grow(0, 0, 11, true);
  spool_.Pump(sink_);
  ASSERT_EQ(sink_.chunks.size(), 2u);
  EXPECT_EQ(sink_.chunks[0].offset(), 0u);
  EXPECT_FALSE(sink_.chunks[0].end());
  EXPECT_EQ(sink_.chunks[1].offset(), 6u);
  EXPECT_TRUE(sink_.chunks[1].end());
  EXPECT_EQ(sink_.Text(0, v1::STREAM_STDOUT), "hello world");
}

TEST_F(SpoolTest, OnlyWhatTheShimHasToldIsRead) {
  Write(0, "stdout.log", "hello world");
  spool_.Grow(0, 0, 5, false);
  spool_.Pump(sink_);
  EXPECT_EQ(sink_.Text(0, v1::STREAM_STDOUT), "hello");
}

TEST_F(SpoolTest, EmptyAndMissingStreamsHaveAnEndToo) {
  Write(0, "stdout.log", "");
  spool_.CompleteFromFile(0);
  spool_.Pump(sink_);
  ASSERT_EQ(sink_.chunks.size(), 3u);
  for (const auto& chunk : sink_.chunks) {
    EXPECT_TRUE(chunk.end());
    EXPECT_EQ(chunk.data(), "");
    EXPECT_TRUE(Ack(0, chunk.stream(), 0, true));
  }
  EXPECT_TRUE(spool_.AllAcked());
}

TEST_F(SpoolTest, AnEndAfterAllIsSentIsAnEmptyChunk) {
  Write(0, "stdout.log", "x");
  spool_.Grow(0, 0, 1, false);
  spool_.Pump(sink_);
  spool_.Grow(0, 0, 1, true);
  spool_.Pump(sink_);
  ASSERT_EQ(sink_.chunks.size(), 2u);
  EXPECT_TRUE(sink_.chunks[1].end());
  EXPECT_EQ(sink_.chunks[1].offset(), 1u);
}

TEST_F(SpoolTest, WindowStopsAndAcksReopenIt) {
  const std::string text(6 << 20, 'x');
  Write(0, "stdout.log", text);
  spool_.Grow(0, 0, text.size(), true);
  spool_.Pump(sink_);
  EXPECT_EQ(sink_.Text(0, v1::STREAM_STDOUT).size(), LogSpool::kWindow);
  for (const auto& chunk : sink_.chunks) {
    EXPECT_LE(chunk.data().size(), StreamReader::kMaxChunk);
  }
  EXPECT_TRUE(Ack(0, v1::STREAM_STDOUT, 1 << 20));
  spool_.Pump(sink_);
  EXPECT_EQ(sink_.Text(0, v1::STREAM_STDOUT).size(), LogSpool::kWindow + (1 << 20));
  EXPECT_FALSE(Ack(0, v1::STREAM_STDOUT, 1 << 20));  // nothing new
  EXPECT_TRUE(Ack(0, v1::STREAM_STDOUT, 5 << 20));
  spool_.Pump(sink_);
  EXPECT_TRUE(sink_.chunks.back().end());
  EXPECT_EQ(sink_.Text(0, v1::STREAM_STDOUT), text);
}

TEST_F(SpoolTest, AFloodDoesNotStarveItsNeighbours) {
  Write(0, "stdout.log", std::string(3 << 20, 'x'));
  Write(1, "stdout.log", "quiet");
  spool_.Grow(0, 0, 3 << 20, false);
  spool_.Grow(1, 0, 5, false);
  sink_.limit = 2;
  spool_.Pump(sink_);
  EXPECT_EQ(sink_.Text(1, v1::STREAM_STDOUT), "quiet");
}

TEST_F(SpoolTest, ANewStreamGetsWhatWasNotAcknowledged) {
  Write(0, "stdout.log", "0123456789");
  spool_.Grow(0, 0, 10, true);
  spool_.Pump(sink_);
  Ack(0, v1::STREAM_STDOUT, 4);
  spool_.Rewind();
  sink_.chunks.clear();
  spool_.Pump(sink_);
  ASSERT_EQ(sink_.chunks.size(), 1u);
  EXPECT_EQ(sink_.chunks[0].offset(), 4u);
  EXPECT_EQ(sink_.chunks[0].data(), "456789");
  EXPECT_TRUE(sink_.chunks[0].end());
}

// The controller's disk was full: it repeats its last ack until the bytes behind it come again.
TEST_F(SpoolTest, AnAckWithoutProgressAsksAgain) {
  Write(0, "stdout.log", "0123456789");
  spool_.Grow(0, 0, 10, true);
  spool_.Pump(sink_);
  EXPECT_TRUE(Ack(0, v1::STREAM_STDOUT, 4));
  spool_.Pump(sink_);
  ASSERT_EQ(sink_.chunks.size(), 1u);
  EXPECT_FALSE(Ack(0, v1::STREAM_STDOUT, 4));
  spool_.Pump(sink_);
  ASSERT_EQ(sink_.chunks.size(), 2u);
  EXPECT_EQ(sink_.chunks[1].offset(), 4u);
  EXPECT_EQ(sink_.chunks[1].data(), "456789");
  EXPECT_TRUE(sink_.chunks[1].end());
  EXPECT_TRUE(Ack(0, v1::STREAM_STDOUT, 1)) << "it has lost bytes";
  spool_.Pump(sink_);
  EXPECT_EQ(sink_.chunks[2].data(), "123456789");
  EXPECT_TRUE(Ack(0, v1::STREAM_STDOUT, 10));
  EXPECT_FALSE(Ack(0, v1::STREAM_STDOUT, 10)) << "the end was missed";
  spool_.Pump(sink_);
  ASSERT_EQ(sink_.chunks.size(), 4u);
  EXPECT_TRUE(sink_.chunks[3].end());
  EXPECT_TRUE(Ack(0, v1::STREAM_STDOUT, 10, true));
  EXPECT_TRUE(spool_.AllAcked());
}

TEST_F(SpoolTest, ARestartedDaemonBeginsAtItsAcks) {
  Write(0, "stdout.log", "0123456789");
  spool_.Grow(0, 0, 10, true);
  spool_.Pump(sink_);
  Ack(0, v1::STREAM_STDOUT, 7);
  LogSpool next(testing::Id("1"), dir_.path(), spool_.Acks());
  next.Grow(0, 0, 10, true);
  sink_.chunks.clear();
  next.Pump(sink_);
  EXPECT_EQ(sink_.Text(0, v1::STREAM_STDOUT), "789");
  // The controller is ahead of the acks we kept.
  LogSpool behind(testing::Id("1"), dir_.path(), worker::AckRecord());
  behind.Grow(0, 0, 10, true);
  v1::LogAck ack;
  ack.set_stream(v1::STREAM_STDOUT);
  ack.set_offset(10);
  ack.set_end(true);
  EXPECT_TRUE(behind.Ack(ack));
  sink_.chunks.clear();
  behind.Pump(sink_);
  EXPECT_TRUE(sink_.chunks.empty());
}

TEST_F(SpoolTest, HostileAcksChangeNothing) {
  Write(0, "stdout.log", "0123456789");
  spool_.Grow(0, 0, 10, false);
  spool_.Pump(sink_);
  EXPECT_FALSE(Ack(5, v1::STREAM_STDOUT, 3));
  EXPECT_FALSE(Ack(0, v1::STREAM_UNSPECIFIED, 3));
  EXPECT_FALSE(Ack(0, static_cast<v1::Stream>(77), 3));
  EXPECT_TRUE(Ack(0, v1::STREAM_STDOUT, 1ull << 60, true));  // taken as: all that is there
  EXPECT_FALSE(spool_.AllAcked());
  Write(0, "stdout.log", "abc");
  spool_.Grow(0, 0, 13, true);
  sink_.chunks.clear();
  spool_.Pump(sink_);
  EXPECT_EQ(sink_.Text(0, v1::STREAM_STDOUT), "abc");
}

TEST_F(SpoolTest, TimesBelongToTheirChunk) {
  Write(0, "stdout.log", std::string(300 << 10, 'x'));
  WriteTimes(0, {{0, 100}, {1000, 200}, {256 << 10, 300}, {299 << 10, 400}});
  spool_.Grow(0, 0, 300 << 10, false);
  spool_.Pump(sink_);
  ASSERT_EQ(sink_.chunks.size(), 2u);
  ASSERT_EQ(sink_.chunks[0].times_size(), 2);
  EXPECT_EQ(sink_.chunks[0].times(1).realtime_ns(), 200);
  ASSERT_EQ(sink_.chunks[1].times_size(), 2);
  EXPECT_EQ(sink_.chunks[1].times(0).offset(), 256u << 10);
  // From the middle again: found by search, not by position.
  Ack(0, v1::STREAM_STDOUT, 500);
  spool_.Rewind();
  sink_.chunks.clear();
  spool_.Pump(sink_);
  ASSERT_EQ(sink_.chunks[0].times_size(), 2);
  EXPECT_EQ(sink_.chunks[0].times(0).offset(), 1000u);
  EXPECT_EQ(sink_.chunks[0].times(1).offset(), 256u << 10);
}

TEST_F(SpoolTest, ManyWritesEndAChunkEarly) {
  Write(0, "stdout.log", std::string(10000, 'x'));
  std::vector<TimesRecord> records;
  for (uint64_t i = 0; i < 10000; ++i) records.push_back({i, static_cast<int64_t>(i)});
  WriteTimes(0, records);
  spool_.Grow(0, 0, 10000, true);
  spool_.Pump(sink_);
  int times = 0;
  for (const auto& chunk : sink_.chunks) {
    EXPECT_LE(chunk.times_size(), StreamReader::kMaxTimes);
    EXPECT_LT(chunk.ByteSizeLong(), 1u << 20);
    times += chunk.times_size();
  }
  EXPECT_EQ(times, 10000);
  EXPECT_EQ(sink_.Text(0, v1::STREAM_STDOUT).size(), 10000u);
}

TEST_F(SpoolTest, DamagedTimesAreNoTimes) {
  Write(0, "stdout.log", "hello");
  Write(0, "stdout.times", "not a times file at all");
  spool_.Grow(0, 0, 5, false);
  spool_.Pump(sink_);
  EXPECT_EQ(sink_.Text(0, v1::STREAM_STDOUT), "hello");
  EXPECT_EQ(sink_.chunks[0].times_size(), 0);
}

TEST_F(SpoolTest, AFileThatLostItsTailEndsWhereItEnds) {
  Write(0, "stdout.log", "short");
  spool_.Grow(0, 0, 100, true);
  spool_.Pump(sink_);
  const v1::LogChunk& last = sink_.chunks.back();
  EXPECT_TRUE(last.end());
  EXPECT_EQ(last.offset(), 100U);
  EXPECT_EQ(last.lost(), 95U);
  EXPECT_NE(last.lost_why().find("shorter than what was written"), std::string::npos);
  EXPECT_TRUE(Ack(0, v1::STREAM_STDOUT, 100, true));
}

TEST_F(SpoolTest, WhatTheDiskCannotReadIsLostAndSaid) {
  std::filesystem::create_directories(dir_.path() + "/0/stdout.log");  // reading fails with EISDIR
  spool_.Grow(0, 0, 100, false);
  spool_.Pump(sink_);
  EXPECT_TRUE(sink_.chunks.empty());  // it may get better
  spool_.Grow(0, 0, 100, true);
  spool_.Pump(sink_);
  ASSERT_EQ(sink_.chunks.size(), 1U);
  EXPECT_TRUE(sink_.chunks[0].end());
  EXPECT_EQ(sink_.chunks[0].lost(), 100U);
  EXPECT_EQ(sink_.chunks[0].lost_why(), "read stdout.log: Is a directory");
}

class FloorTest : public SpoolTest {
 protected:
  void SetUp() override {
    Write(0, "stdout.log", std::string(1000, 'a') + std::string(1000, 'b'));
    ASSERT_TRUE(floors_.Create(dir_.path() + "/0/floors"));
    spool_.Grow(0, 0, 2000, false);
  }
  shim::LogFloor floors_;
};

TEST_F(FloorTest, WhatWasDroppedIsPassedOverAndCounted) {
  ASSERT_TRUE(floors_.Raise(0, 1000));
  spool_.Pump(sink_);
  ASSERT_EQ(sink_.chunks.size(), 1U);
  EXPECT_EQ(sink_.chunks[0].offset(), 1000U);
  EXPECT_EQ(sink_.chunks[0].lost(), 1000U);
  EXPECT_EQ(sink_.chunks[0].data(), std::string(1000, 'b'));
  v1::LogAck ack;
  ack.set_rank(0);
  ack.set_stream(v1::STREAM_STDOUT);
  ack.set_offset(2000);
  ack.set_lost(1000);
  EXPECT_TRUE(spool_.Ack(ack));
  EXPECT_EQ(spool_.LostOf(0), 1000U);
  EXPECT_EQ(spool_.AckedOf(0, 0), 2000U);
  const LogSpool next(testing::Id("1"), dir_.path(), spool_.Acks());
  EXPECT_EQ(next.LostOf(0), 1000U);
}

TEST_F(FloorTest, WhatWasSentBeforeItWasDroppedIsNotLost) {
  spool_.Pump(sink_);
  ASSERT_TRUE(floors_.Raise(0, 1000));
  Write(0, "stdout.log", "c");
  spool_.Grow(0, 0, 2001, false);
  spool_.Pump(sink_);
  ASSERT_EQ(sink_.chunks.size(), 2U);
  EXPECT_EQ(sink_.chunks[1].lost(), 0U);
  EXPECT_EQ(sink_.chunks[1].data(), "c");
  // The controller did not get it after all: now it is.
  spool_.Rewind();
  spool_.Pump(sink_);
  EXPECT_EQ(sink_.chunks.back().offset(), 1000U);
  EXPECT_EQ(sink_.chunks.back().lost(), 1000U);
}

TEST_F(FloorTest, AGreatLossDoesNotFillTheWindow) {
  std::filesystem::resize_file(dir_.path() + "/0/stdout.log", 64 << 20);
  ASSERT_TRUE(floors_.Raise(0, 60 << 20));
  spool_.Grow(0, 0, 64 << 20, true);
  spool_.Pump(sink_);
  EXPECT_EQ(sink_.chunks.front().lost(), 60U << 20);
  EXPECT_EQ(sink_.Text(0, v1::STREAM_STDOUT).size(), 4U << 20);
  EXPECT_TRUE(sink_.chunks.back().end());
}

TEST_F(FloorTest, AStreamThatIsDroppedToItsEndStillEnds) {
  ASSERT_TRUE(floors_.Raise(0, 2000));
  spool_.Grow(0, 0, 2000, true);
  spool_.Pump(sink_);
  ASSERT_EQ(sink_.chunks.size(), 1U);
  EXPECT_TRUE(sink_.chunks[0].end());
  EXPECT_EQ(sink_.chunks[0].offset(), 2000U);
  EXPECT_EQ(sink_.chunks[0].lost(), 2000U);
}

}  // namespace
}  // namespace muster::spool
