#include "trainer/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>

#include "tests/checkpoint/temp_folder.h"

namespace muster::checkpoint {
namespace {

using ::testing::HasSubstr;

std::string WithLength(const std::string& header, const std::string& data) {
  std::string bytes(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

constexpr char kTwoTensors[] = R"({"__metadata__":{"format":"pt"},)"
                               R"("a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
                               R"("b":{"dtype":"I64","shape":[],"data_offsets":[16,24]}})";

class SafetensorsReaderTest : public ::testing::Test {
 protected:
  SafetensorsReader Read(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return SafetensorsReader(path_);
  }
  void ExpectRefused(const std::string& bytes, const std::string& reason) {
    try {
      Read(bytes);
      ADD_FAILURE() << "accepted: " << reason;
    } catch (const SafetensorsError& e) {
      EXPECT_THAT(e.what(), HasSubstr(reason));
      EXPECT_THAT(e.what(), HasSubstr(path_.string() + ": offset "));
    }
  }
  void ExpectHeaderRefused(const std::string& header, size_t data, const std::string& reason) {
    ExpectRefused(WithLength(header, std::string(data, '\0')), reason);
  }

  TempFolder folder_;
  std::filesystem::path path_ = folder_.path() / "x.safetensors";
};

TEST_F(SafetensorsReaderTest, ReadsTensorsAndMetadata) {
  std::string data(24, '\0');
  const float values[] = {1, 2, 3, 4};
  const int64_t scalar = -7;
  std::memcpy(data.data(), values, 16);
  std::memcpy(data.data() + 16, &scalar, 8);
  at::Tensor view;
  {
    const SafetensorsReader reader = Read(WithLength(kTwoTensors, data));
    EXPECT_EQ(reader.metadata().at("format"), "pt");
    EXPECT_EQ(reader.tensors().size(), 2u);
    EXPECT_TRUE(reader.Contains("a"));
    EXPECT_FALSE(reader.Contains("c"));
    EXPECT_EQ(reader.Load("b").item<int64_t>(), -7);
    view = reader.View("a");
    EXPECT_EQ(view[1][0].item<float>(), 3);
  }
  EXPECT_EQ(view[1][1].item<float>(), 4);  // outlives the reader
  view.zero_();                            // and may be written: the file stays
  EXPECT_EQ(SafetensorsReader(path_).Load("a").sum().item<float>(), 10);
}

TEST_F(SafetensorsReaderTest, MissingTensorNamesTheNearest) {
  const SafetensorsReader reader = Read(
      WithLength(R"({"model.norm.weight":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "x"));
  try {
    reader.Load("model.norm.weigth");
    FAIL();
  } catch (const SafetensorsError& e) {
    EXPECT_THAT(e.what(), HasSubstr("did you mean 'model.norm.weight'"));
    EXPECT_EQ(e.offset(), -1);
  }
}

TEST_F(SafetensorsReaderTest, MissingFileIsNamed) {
  try {
    SafetensorsReader reader(folder_.path() / "absent");
    FAIL();
  } catch (const SafetensorsError& e) {
    EXPECT_THAT(e.what(), HasSubstr("absent: can't open: No such file"));
  }
}

TEST_F(SafetensorsReaderTest, HostileLengthsAreRefused) {
  ExpectRefused("", "no header length");
  ExpectRefused("1234567", "no header length");
  ExpectRefused(std::string(8, '\xff'), "header length");
  ExpectRefused(std::string("\x10\0\0\0\0\0\0\0{}", 10), "header length 16");
}

TEST_F(SafetensorsReaderTest, HostileHeadersAreRefused) {
  ExpectHeaderRefused("{", 0, "not JSON");
  ExpectHeaderRefused("[]", 0, "must be a JSON object");
  ExpectHeaderRefused(std::string(100000, '['), 0, "not JSON");
  ExpectHeaderRefused(R"({"a":1})", 0, "tensor 'a': expected an object");
  ExpectHeaderRefused(R"({"a":{"dtype":"F32","shape":[1]}})", 0, "needs dtype, shape");
  ExpectHeaderRefused(R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", 4,
                      "unknown dtype 'F33'");
  ExpectHeaderRefused(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "shape");
  ExpectHeaderRefused(R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, "shape");
  ExpectHeaderRefused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4, "[begin, end]");
  ExpectHeaderRefused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "end before");
  ExpectHeaderRefused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4,
                      "unknown field 'x'");
  ExpectHeaderRefused(R"({"__metadata__":{"k":1}})", 0, "must be a string");
  const std::string one = R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  ExpectHeaderRefused("{" + one + "," + one + "}", 1, "tensor 'a': named twice");
}

TEST_F(SafetensorsReaderTest, RangesThatDoNotFitAreRefused) {
  const auto entry = [](const std::string& shape, const std::string& offsets) {
    return R"({"a":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  ExpectHeaderRefused(entry("[2]", "[0,8]"), 4, "of only 4 bytes");
  ExpectHeaderRefused(entry("[1]", "[0,8]"), 8, "do not fit the 8 bytes");
  ExpectHeaderRefused(entry("[1]", "[4,8]"), 8, "hole");
  ExpectHeaderRefused(entry("[1]", "[0,4]"), 8, "bytes after the last tensor");
  // 2^32 * 2^32 * 4 is 0 in 64 bits.
  ExpectHeaderRefused(entry("[4294967296,4294967296]", "[0,0]"), 0, "do not fit the 0 bytes");
  ExpectHeaderRefused(entry("[9007199254740992,9007199254740992,9007199254740992]", "[0,4]"), 4,
                      "do not fit");
  ExpectHeaderRefused(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                      R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
                      6, "tensor 'b' overlaps another");
  EXPECT_EQ(Read(WithLength(entry("[0,9007199254740992]", "[0,0]"), "")).Load("a").numel(), 0);
}

// Whatever one byte becomes, the file is read or refused, never worse; and every cut is refused.
TEST_F(SafetensorsReaderTest, DamagedFilesAreReadOrRefused) {
  const std::string whole = WithLength(kTwoTensors, std::string(24, '\1'));
  for (size_t i = 0; i < whole.size() - 24; ++i) {
    for (const char damage : {'\0', '\xff', '9', '"', '}'}) {
      std::string bytes = whole;
      bytes[i] = damage;
      try {
        const SafetensorsReader reader = Read(bytes);
        for (const auto& [name, info] : reader.tensors()) reader.Load(name);
      } catch (const SafetensorsError&) {
      }
    }
  }
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROW(Read(whole.substr(0, size)), SafetensorsError) << size;
  }
}

}  // namespace
}  // namespace muster::checkpoint
