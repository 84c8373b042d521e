// Writer and reader together, and files that are damaged in every way.
#include "trainer/data/indexed_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "tests/data/golden.h"
#include "trainer/data/data_error.h"
#include "trainer/data/indexed_writer.h"

namespace muster::data {
namespace {

using ::testing::HasSubstr;

// Three documents of 3, 0 and 2+1 tokens.
constexpr uint16_t kTokens[] = {10, 11, 12, 20, 21, 30};
constexpr int32_t kLengths[] = {3, 2, 1};
constexpr int32_t kSequences[] = {1, 0, 2};

std::string MessageOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const DataError& error) {
    return error.what();
  }
  return "(no DataError)";
}

class IndexedDatasetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    IndexedWriter writer(prefix_, TokenType::kUint16);
    writer.Append({reinterpret_cast<const uint8_t*>(kTokens), sizeof(kTokens)}, kLengths,
                  kSequences);
    writer.Finish();
    index_ = testing::ReadFile(prefix_ + ".idx");
  }

  void WriteIndex(const std::string& bytes) { testing::WriteFile(prefix_ + ".idx", bytes); }
  std::string OpenError() const {
    return MessageOf([this] { IndexedDataset dataset(prefix_); });
  }

  testing::TempFolder folder_;
  std::string prefix_ = (folder_.path() / "x").string();
  std::string index_;
};

TEST_F(IndexedDatasetTest, ReadsWhatWasWritten) {
  for (const bool map : {true, false}) {
    const IndexedDataset dataset(prefix_, map);
    EXPECT_EQ(dataset.token_type(), TokenType::kUint16);
    EXPECT_EQ(dataset.num_documents(), 3);
    EXPECT_EQ(dataset.document_begin(1), 1);
    EXPECT_EQ(dataset.document_begin(2), 1);
    EXPECT_EQ(dataset.document_begin(3), 3);
    ASSERT_EQ(dataset.lengths().size(), 3);
    int64_t tokens[3];
    dataset.Read(1, 0, 2, tokens);
    EXPECT_EQ(tokens[0], 20);
    EXPECT_EQ(tokens[1], 21);
    dataset.Read(0, 1, 2, tokens);
    EXPECT_EQ(tokens[1], 12);
    EXPECT_THROW(dataset.Read(0, 2, 2, tokens), DataError);
    EXPECT_THROW(dataset.Read(3, 0, 1, tokens), DataError);
  }
}

TEST_F(IndexedDatasetTest, ByteLayoutOfTheIndex) {
  const std::string expected(
      "MMIDIDX\0\0"
      "\1\0\0\0\0\0\0\0"
      "\10"
      "\3\0\0\0\0\0\0\0"
      "\4\0\0\0\0\0\0\0"
      "\3\0\0\0\2\0\0\0\1\0\0\0"
      "\0\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0\12\0\0\0\0\0\0\0"
      "\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0",
      34 + 12 + 24 + 32);
  EXPECT_EQ(index_, expected);
}

TEST_F(IndexedDatasetTest, NothingAppearsBeforeFinish) {
  const std::string other = (folder_.path() / "unfinished").string();
  {
    IndexedWriter writer(other, TokenType::kUint16);
    writer.Append({reinterpret_cast<const uint8_t*>(kTokens), sizeof(kTokens)}, kLengths,
                  kSequences);
    EXPECT_FALSE(std::filesystem::exists(other + ".bin"));
    EXPECT_FALSE(std::filesystem::exists(other + ".idx"));
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    EXPECT_EQ(entry.path().filename().string().find("unfinished"), std::string::npos)
        << entry.path();
  }
}

TEST_F(IndexedDatasetTest, EveryTruncationIsRefusedByName) {
  for (size_t size = 0; size < index_.size(); ++size) {
    WriteIndex(index_.substr(0, size));
    EXPECT_THAT(OpenError(), HasSubstr(prefix_ + ".idx, offset ")) << size;
  }
}

// docs/formats.md: a changed byte is refused with its place, but for a document entry that still
// lies between its neighbours: then the documents are cut elsewhere and every token stays what it
// was.
TEST_F(IndexedDatasetTest, EveryFlippedBitIsRefusedOrMovesADocument) {
  const size_t documents = index_.size() - 4 * 8;
  int moved = 0;
  for (size_t at = 0; at < index_.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = index_;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      int64_t entries[4];
      std::memcpy(entries, damaged.data() + documents, sizeof(entries));
      const bool still_in_order = at >= documents && entries[0] == 0 && entries[3] == 3 &&
                                  std::is_sorted(entries, entries + 4);
      WriteIndex(damaged);
      if (!still_in_order) {
        ASSERT_THAT(OpenError(), HasSubstr("offset ")) << at << " " << bit;
        ASSERT_THAT(OpenError(), HasSubstr(prefix_)) << at << " " << bit;
        continue;
      }
      ++moved;
      const IndexedDataset dataset(prefix_);
      dataset.CheckAll(2);
      std::vector<int64_t> tokens(6);
      dataset.Read(0, 0, 3, tokens.data());
      dataset.Read(1, 0, 2, tokens.data() + 3);
      dataset.Read(2, 0, 1, tokens.data() + 5);
      ASSERT_EQ(tokens, std::vector<int64_t>(std::begin(kTokens), std::end(kTokens)));
    }
  }
  EXPECT_GT(moved, 0);
}

// More sequences than opening looks at: the damage lies between two that it does.
TEST_F(IndexedDatasetTest, WhatOpeningDoesNotSeeIsFoundByReadingAndByCheckingAll) {
  constexpr int64_t kCount = 10'000;
  const std::string prefix = (folder_.path() / "many").string();
  {
    IndexedWriter writer(prefix, TokenType::kUint16);
    const std::vector<uint8_t> tokens(kCount * 2);
    const std::vector<int32_t> ones(kCount, 1);
    writer.Append(tokens, ones, ones);
    writer.Finish();
  }
  const std::string whole = testing::ReadFile(prefix + ".idx");
  const int64_t sequence = 5001;
  const auto damage = [&](int64_t offset, char value) {
    std::string damaged = whole;
    damaged[static_cast<size_t>(offset)] = value;
    testing::WriteFile(prefix + ".idx", damaged);
  };
  const int64_t starts = kIndexHeaderBytes + 4 * kCount;
  const int64_t documents = starts + 8 * kCount;
  const std::string place = prefix + ".idx, offset " + std::to_string(starts + 8 * sequence);

  damage(kIndexHeaderBytes + 4 * sequence, 2);  // its length
  const IndexedDataset length(prefix);
  int64_t token = 0;
  EXPECT_THAT(MessageOf([&] { length.Read(sequence, 0, 1, &token); }), HasSubstr(place));
  EXPECT_THAT(MessageOf([&] { length.CheckAll(3); }), HasSubstr(place));
  length.Read(sequence + 1, 0, 1, &token);

  damage(documents + 8 * sequence, 0);
  const IndexedDataset document(prefix);
  const std::string its_place =
      prefix + ".idx, offset " + std::to_string(documents + 8 * (sequence - 1));
  EXPECT_THAT(MessageOf([&] { document.SequencesOf(sequence - 1); }), HasSubstr(its_place));
  EXPECT_THAT(MessageOf([&] { document.CheckAll(3); }), HasSubstr(its_place));
}

TEST_F(IndexedDatasetTest, TheIndexOfAnotherBinIsRefused) {
  const std::string other = (folder_.path() / "other").string();
  IndexedWriter writer(other, TokenType::kUint16);
  const uint16_t tokens[] = {1, 2, 3, 4, 5, 6, 7};
  const int32_t lengths[] = {4, 3};
  const int32_t sequences[] = {1, 1};
  writer.Append({reinterpret_cast<const uint8_t*>(tokens), sizeof(tokens)}, lengths, sequences);
  writer.Finish();
  std::filesystem::rename(prefix_ + ".idx", other + ".idx");
  EXPECT_THAT(MessageOf([&] { IndexedDataset dataset(other); }),
              HasSubstr("the two do not belong together"));
}

TEST_F(IndexedDatasetTest, HostileCountsAreRefused) {
  for (const int64_t field : {kSequenceCountOffset, kDocumentCountOffset}) {
    for (const uint64_t count : {~uint64_t{0}, uint64_t{1} << 63, uint64_t{1} << 61, uint64_t{0}}) {
      std::string damaged = index_;
      std::memcpy(damaged.data() + field, &count, sizeof(count));
      WriteIndex(damaged);
      EXPECT_THAT(OpenError(), HasSubstr("offset")) << field << " " << count;
    }
  }
}

TEST_F(IndexedDatasetTest, NamesTheWrongField) {
  std::string damaged = index_;
  damaged[kTokenTypeOffset] = 6;
  WriteIndex(damaged);
  EXPECT_THAT(OpenError(), HasSubstr(".idx, offset 17: token type code 6"));

  damaged = index_;
  damaged[kVersionOffset] = 2;
  WriteIndex(damaged);
  EXPECT_THAT(OpenError(), HasSubstr(".idx, offset 9: version 2"));

  damaged = index_;
  damaged[damaged.size() - 8] = 2;
  WriteIndex(damaged);
  EXPECT_THAT(OpenError(), HasSubstr("document entries run from 0 to 2, expected 0 to 3"));
}

TEST_F(IndexedDatasetTest, ShortOrMissingBinIsRefused) {
  testing::WriteFile(prefix_ + ".bin", "ab");
  EXPECT_THAT(OpenError(), HasSubstr("x.bin has 2 bytes"));
  std::filesystem::remove(prefix_ + ".bin");
  EXPECT_THAT(OpenError(), HasSubstr("x.bin: No such file"));
  EXPECT_THAT(MessageOf([] { IndexedDataset dataset("/nowhere/at/all"); }),
              HasSubstr("/nowhere/at/all.idx: No such file"));
}

TEST_F(IndexedDatasetTest, NamesTheSequenceThatDoesNotFit) {
  std::string damaged = index_;
  damaged[kIndexHeaderBytes + 12] = 100;  // the first start
  WriteIndex(damaged);
  EXPECT_THAT(OpenError(), HasSubstr("x.idx, offset 46: sequence 0 has 3 tokens of 2 bytes (its "
                                     "length is at offset 34) and starts at byte 100"));
}

TEST(IndexedWriter, NamesAFolderThatIsNotThere) {
  EXPECT_THAT(MessageOf([] { IndexedWriter writer("/nowhere/x", TokenType::kInt32); }),
              HasSubstr("create /nowhere/x.bin"));
}

}  // namespace
}  // namespace muster::data
