#include "controller/logs/times_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "controller/logs/file_io.h"
#include "controller/logs/times_reader.h"
#include "tests/logs/temp_dir.h"

namespace muster::logs {
namespace {

class TimesFileTest : public testing::Test {
 protected:
  TimesFileTest() { fd_ = *OpenFile(path_, O_RDWR | O_CREAT); }

  TimesTail Repair(uint64_t log_size) { return *RepairTimes(fd_.get(), log_size, path_); }
  uint64_t Count() { return *CountRecords(fd_.get(), path_); }

  TempDir dir_;
  const std::string path_ = dir_.File("stdout.times");
  UniqueFd fd_;
};

TEST_F(TimesFileTest, AppendsOnlyWhatRises) {
  TimesTail tail = Repair(0);
  ASSERT_TRUE(
      AppendTimes(fd_.get(), {{0, 10}, {5, 20}, {5, 21}, {3, 22}, {9, 30}}, tail, path_).ok());
  ASSERT_TRUE(AppendTimes(fd_.get(), {{0, 10}, {9, 31}, {12, 40}}, tail, path_).ok());
  EXPECT_EQ(Count(), 4u);
  TimesReader reader(path_);
  EXPECT_EQ(reader.TimeAt(0), 10);
  EXPECT_EQ(reader.TimeAt(4), 10);
  EXPECT_EQ(reader.TimeAt(5), 20);
  EXPECT_EQ(reader.TimeAt(11), 30);
  EXPECT_EQ(reader.TimeAt(100), 40);
}

TEST_F(TimesFileTest, RepairCutsWhatTheLogDoesNotHave) {
  TimesTail tail = Repair(0);
  ASSERT_TRUE(AppendTimes(fd_.get(), {{0, 10}, {5, 20}, {9, 30}}, tail, path_).ok());
  tail = Repair(9);
  EXPECT_EQ(Count(), 2u);
  EXPECT_EQ(tail.next_offset, 6u);
  ASSERT_TRUE(AppendTimes(fd_.get(), {{9, 31}}, tail, path_).ok());
  EXPECT_EQ(Count(), 3u);
}

TEST_F(TimesFileTest, EveryCutIsRepaired) {
  TimesTail tail = Repair(0);
  ASSERT_TRUE(AppendTimes(fd_.get(), {{0, 10}, {5, 20}, {9, 30}}, tail, path_).ok());
  const std::string whole = ReadFile(path_);
  for (size_t size = 0; size <= whole.size(); ++size) {
    WriteFile(path_, whole.substr(0, size));
    TimesTail cut = Repair(100);
    const size_t records =
        size < kTimesHeaderSize ? 0 : (size - kTimesHeaderSize) / kTimesRecordSize;
    EXPECT_EQ(Count(), records) << size;
    ASSERT_TRUE(AppendTimes(fd_.get(), {{50, 60}}, cut, path_).ok());
    EXPECT_EQ(ReadFile(path_).size(), kTimesHeaderSize + (records + 1) * kTimesRecordSize);
  }
}

TEST_F(TimesFileTest, FlippedBytesAreSurvived) {
  TimesTail tail = Repair(0);
  ASSERT_TRUE(AppendTimes(fd_.get(), {{0, 10}, {5, 20}, {9, 30}}, tail, path_).ok());
  const std::string whole = ReadFile(path_);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x80);
    WriteFile(path_, damaged);
    TimesReader reader(path_);
    for (uint64_t offset = 0; offset < 20; ++offset) reader.TimeAt(offset);
    const TimesTail repaired = Repair(20);
    EXPECT_LE(repaired.file_size, whole.size());
    EXPECT_EQ((repaired.file_size - kTimesHeaderSize) % kTimesRecordSize, 0u);
  }
}

TEST_F(TimesFileTest, ReaderFollowsAGrowingFile) {
  TimesReader reader(path_);
  EXPECT_EQ(reader.TimeAt(0), 0);
  TimesTail tail = Repair(0);
  ASSERT_TRUE(AppendTimes(fd_.get(), {{0, 10}}, tail, path_).ok());
  reader.Refresh();
  EXPECT_EQ(reader.TimeAt(3), 10);
  for (uint64_t i = 1; i < 1000; ++i) {
    ASSERT_TRUE(AppendTimes(fd_.get(), {{i * 10, static_cast<int64_t>(i)}}, tail, path_).ok());
  }
  reader.Refresh();
  for (uint64_t i = 1; i < 1000; ++i) EXPECT_EQ(reader.TimeAt(i * 10 + 9), static_cast<int64_t>(i));
}

TEST_F(TimesFileTest, ReaderFindsAPlaceFarIn) {
  TimesTail tail = Repair(0);
  std::vector<TimesRecord> records;
  for (uint64_t i = 0; i < 5000; ++i) records.push_back({i * 10, static_cast<int64_t>(i)});
  ASSERT_TRUE(AppendTimes(fd_.get(), records, tail, path_).ok());
  for (const uint64_t i : {0u, 1u, 127u, 128u, 129u, 4999u}) {
    TimesReader reader(path_);
    EXPECT_EQ(reader.TimeAt(i * 10 + 5), static_cast<int64_t>(i));
  }
}

}  // namespace
}  // namespace muster::logs
