// Writer and reader together, and files that are damaged in every way.
#include "trainer/data/indexed_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST_F(IndexedDatasetTest, EveryFlippedByteIsRefusedOrHarmless) {
  for (size_t at = 0; at < index_.size(); ++at) {
    for (const char mask : {'\x01', '\x80', '\xff'}) {
      std::string damaged = index_;
      damaged[at] = static_cast<char>(damaged[at] ^ mask);
      WriteIndex(damaged);
      try {
        const IndexedDataset dataset(prefix_);
        for (int64_t i = 0; i < dataset.lengths().size(); ++i) {
          std::vector<int64_t> tokens(16);
          dataset.Read(i, 0, std::min<int64_t>(dataset.lengths()[i], 16), tokens.data());
        }
      } catch (const DataError& error) {
        EXPECT_THAT(error.what(), HasSubstr(prefix_));
      }
    }
  }
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
