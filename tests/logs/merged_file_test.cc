#include "controller/logs/merged_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "tests/logs/temp_dir.h"

namespace muster::logs {
namespace {

class MergedFileTest : public testing::Test {
 protected:
  MergedFileTest() {
    for (uint32_t rank : {4, 5}) {
      std::filesystem::create_directory(dir_.File(std::to_string(rank)));
      ranks_.push_back(std::make_unique<StreamFile>(dir_.File(std::to_string(rank)),
                                                    v1::STREAM_STDOUT, rotation_, open_));
      EXPECT_TRUE(ranks_.back()->Recover().ok());
    }
  }

  std::unique_ptr<MergedFile> Open() {
    auto merged = std::make_unique<MergedFile>(path_, 4, 2, 1, rotation_, open_);
    EXPECT_TRUE(merged->Recover().ok());
    return merged;
  }
  void Write(uint32_t rank, const std::string& text) {
    StreamFile& file = *ranks_[rank - 4];
    EXPECT_TRUE(file.Append(file.size(), text, {}).ok());
  }
  static void Merge(MergedFile& merged, uint32_t rank, StreamFile& file, bool ended = false) {
    EXPECT_TRUE(merged.Merge(rank, file, ended).ok());
  }

  TempDir dir_;
  const std::string path_ = dir_.File("tiny.log.0.h");
  Rotation rotation_;
  OpenFiles open_{0};
  std::vector<std::unique_ptr<StreamFile>> ranks_;
};

TEST_F(MergedFileTest, HoldsPartialLinesBackInTheirOwnFile) {
  auto merged = Open();
  Write(4, "one\ntw");
  Write(5, "a\n");
  Merge(*merged, 4, *ranks_[0]);
  Merge(*merged, 5, *ranks_[1]);
  EXPECT_EQ(ReadFile(path_), "4 out | one\n5 out | a\n");
  Write(4, "o\n");
  EXPECT_TRUE(merged->Worthwhile(4, *ranks_[0], "o\n"));
  Merge(*merged, 4, *ranks_[0]);
  EXPECT_EQ(ReadFile(path_), "4 out | one\n5 out | a\n4 out | two\n");
}

TEST_F(MergedFileTest, LongLinesNeedNoNewlineToComeThrough) {
  auto merged = Open();
  Write(4, std::string(kMaxMergedLine - 1, 'x'));
  EXPECT_FALSE(merged->Worthwhile(4, *ranks_[0], "x"));
  Write(4, "y");
  EXPECT_TRUE(merged->Worthwhile(4, *ranks_[0], "y"));
  Merge(*merged, 4, *ranks_[0]);
  EXPECT_EQ(ReadFile(path_), "4 out + " + std::string(kMaxMergedLine - 1, 'x') + "y\n");
}

TEST_F(MergedFileTest, TheEndBringsTheLastPiece) {
  auto merged = Open();
  Write(4, "one\ntw");
  Merge(*merged, 4, *ranks_[0], true);
  EXPECT_EQ(ReadFile(path_), "4 out | one\n4 out + tw\n");
}

// A merged file that was cut or damaged at any byte is the same again after recovery, and without
// lines twice.
TEST_F(MergedFileTest, EveryCutAndFlipIsHealed) {
  {
    auto merged = Open();
    Write(4, "one\ntwo\n");
    Merge(*merged, 4, *ranks_[0]);
    Write(5, "first\nsecond\nrest");
    Merge(*merged, 5, *ranks_[1]);
  }
  const std::string whole = ReadFile(path_);
  const auto heal = [&](const std::string& damaged) {
    WriteFile(path_, damaged);
    auto merged = Open();
    Merge(*merged, 4, *ranks_[0]);
    Merge(*merged, 5, *ranks_[1]);
    return ReadFile(path_);
  };
  for (size_t size = 0; size <= whole.size(); ++size) {
    EXPECT_EQ(heal(whole.substr(0, size)), whole) << size;
    EXPECT_EQ(heal(whole.substr(0, size) + std::string(whole.size() - size, '\0')), whole) << size;
  }
}

TEST_F(MergedFileTest, RecoversAFileLargerThanItsBatches) {
  {
    auto merged = Open();
    for (int i = 0; i < 40; ++i) {
      Write(4, LongLine(40'000));
      Write(5, "short\n");
      Merge(*merged, 4, *ranks_[0]);
      Merge(*merged, 5, *ranks_[1]);
    }
  }
  const std::string whole = ReadFile(path_);
  auto merged = Open();
  Merge(*merged, 4, *ranks_[0]);
  Merge(*merged, 5, *ranks_[1]);
  EXPECT_EQ(ReadFile(path_), whole);
  Write(5, "more\n");
  Merge(*merged, 5, *ranks_[1]);
  EXPECT_EQ(ReadFile(path_), whole + "5 out | more\n");
}

}  // namespace
}  // namespace muster::logs
