// SentencePiece models as our reader sees them: what it takes from them, and files that it must not
// let through to the library.
#include "trainer/tokenizer/spm_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/data/golden.h"
#include "trainer/tokenizer/factory.h"
#include "trainer/tokenizer/sentencepiece_engine.h"
#include "trainer/tokenizer/spm_spaces.h"
#include "trainer/tokenizer/spm_tokenizer.h"

namespace muster::tokenizer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string GoldenModel() {
  return (data::testing::GoldenRoot() / "megatron/data/spm2000.model").string();
}

// --- protobuf by hand ---

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  return bytes + static_cast<char>(value);
}

std::string Bytes(int number, const std::string& content) {
  return Varint(static_cast<uint64_t>(number) << 3 | 2) + Varint(content.size()) + content;
}

std::string Number(int number, uint64_t value) {
  return Varint(static_cast<uint64_t>(number) << 3) + Varint(value);
}

std::string Float(int number, float value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return Varint(static_cast<uint64_t>(number) << 3 | 5) + bytes;
}

std::string Piece(const std::string& text, SpmType type, float score = 0) {
  return Bytes(1, Bytes(1, text) + Float(2, score) + Number(3, static_cast<uint64_t>(type)));
}

std::string SmallModel() {
  return Piece("<unk>", SpmType::kUnknown) + Piece("<s>", SpmType::kControl) +
         Piece("</s>", SpmType::kControl) + Piece("a", SpmType::kNormal, -1) +
         Bytes(2, Number(3, 1));
}

std::string ErrorOf(const std::string& model) {
  try {
    ReadSpmFile(model);
  } catch (const TokenizerError& error) {
    return error.what();
  }
  return "(accepted)";
}

// A normalization table of one block of 256 units and one text.
std::string Charsmap(std::vector<uint32_t> units, const std::string& texts) {
  units.resize(256);
  const auto bytes = static_cast<uint32_t>(units.size() * sizeof(uint32_t));
  std::string table(sizeof(bytes) + bytes, '\0');
  std::memcpy(table.data(), &bytes, sizeof(bytes));
  std::memcpy(table.data() + sizeof(bytes), units.data(), bytes);
  return table + texts;
}

std::string ModelWithCharsmap(const std::string& charsmap) {
  return SmallModel() + Bytes(3, Bytes(2, charsmap));
}

// --- tests ---

TEST(SpmFile, KnowsPiecesAndSpecialIds) {
  const SpmFile file = ReadSpmFile(SmallModel());
  EXPECT_EQ(file.pieces.size(), 4);
  EXPECT_EQ(file.unknown_id(), 0);
  EXPECT_EQ(file.ControlId(file.bos_piece), 1);
  EXPECT_EQ(file.ControlId(file.eos_piece), 2);
  EXPECT_EQ(file.ControlId(file.pad_piece), -1);
  EXPECT_EQ(file.ControlId("a"), -1) << "not a control piece";
  EXPECT_EQ(file.IdOf("b"), 0);
  const SpmFile renamed = ReadSpmFile(SmallModel() + Bytes(2, Bytes(47, "<s>")));
  EXPECT_EQ(renamed.ControlId(renamed.eos_piece), 1);
}

TEST(SpmFile, WhatIsWrongIsNamedByItsOffset) {
  const std::string good = SmallModel();
  const std::string at_end = "offset " + std::to_string(good.size());
  EXPECT_EQ(ErrorOf(good), "(accepted)");
  EXPECT_THAT(ErrorOf(""), HasSubstr("not a SentencePiece model"));
  EXPECT_THAT(ErrorOf("hello, this is text"), HasSubstr("offset"));
  EXPECT_THAT(ErrorOf(good + Piece("", SpmType::kNormal)), HasSubstr(at_end + ": a piece that is"));
  EXPECT_THAT(ErrorOf(good + Piece(std::string("b\0", 2), SpmType::kNormal)), HasSubstr(at_end));
  EXPECT_THAT(ErrorOf(good + Piece("<0xZZ>", SpmType::kByte)), HasSubstr("names no byte"));
  EXPECT_THAT(ErrorOf(good + Piece("b", static_cast<SpmType>(9))), HasSubstr("unknown type"));
  EXPECT_THAT(ErrorOf(good + Piece("a", SpmType::kNormal)), HasSubstr("piece 4: 'a' stands twice"));
  EXPECT_THAT(ErrorOf(good + Piece("b", SpmType::kUnknown)), HasSubstr("2 pieces for unknown"));
  EXPECT_THAT(ErrorOf(good + Piece("\xff", SpmType::kNormal)), HasSubstr("not valid UTF-8"));
  for (const float score :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -1e30F}) {
    EXPECT_THAT(ErrorOf(good + Piece("b", SpmType::kNormal, score)), HasSubstr("no number"));
  }
  EXPECT_THAT(ErrorOf(good + Bytes(2, Number(3, 7))), HasSubstr("unknown type of model"));
  EXPECT_THAT(ErrorOf(good + Number(1, 5)), HasSubstr(at_end));
  EXPECT_THAT(ErrorOf(good + "\x0a\xff\xff\xff\xff\x7f"), HasSubstr("cut off"));
  EXPECT_THAT(ErrorOf(good + std::string(11, '\xff')), HasSubstr("more than 64 bits"));
}

TEST(SpmFile, TruncatedModelsAreRefusedOrWhole) {
  const std::string whole = data::testing::ReadFile(GoldenModel());
  const size_t pieces = ReadSpmFile(whole).pieces.size();
  for (size_t size = 0; size < whole.size(); size += 1 + whole.size() / 500) {
    try {
      EXPECT_LE(ReadSpmFile(whole.substr(0, size)).pieces.size(), pieces);
    } catch (const TokenizerError& error) {
      SUCCEED() << error.what();
    }
  }
}

TEST(SpmFile, NormalizationTablesStayInTheirBounds) {
  constexpr uint32_t kLeaf = 1 << 8;
  constexpr uint32_t kValue = 1U << 31;
  const auto offset = [](uint32_t value) { return value << 10; };
  // Root -> 'a' (unit 1 ^ 'a' = 96) -> value at 96 ^ 3 = 99.
  const auto units = [&](uint32_t root_offset, uint32_t value) {
    std::vector<uint32_t> result(256);
    result[0] = offset(root_offset);
    result[1 ^ 'a'] = 'a' | kLeaf | offset(3);
    result[1 ^ 'a' ^ 3] = kValue | value;
    return result;
  };
  const std::string text("b\0", 2);
  EXPECT_EQ(ErrorOf(ModelWithCharsmap(Charsmap(units(1, 0), text))), "(accepted)");
  EXPECT_THAT(ErrorOf(ModelWithCharsmap(Charsmap(units(256, 0), text))), HasSubstr("leads out"));
  EXPECT_THAT(ErrorOf(ModelWithCharsmap(Charsmap(units(1, 2), text))), HasSubstr("outside"));
  EXPECT_THAT(ErrorOf(ModelWithCharsmap(Charsmap(units(1, 0), "b"))), HasSubstr("no end"));
  // A zero byte in a text leads from this root to itself, and its leaf is the root again.
  EXPECT_THAT(ErrorOf(ModelWithCharsmap(Charsmap({kLeaf | 0x200}, text))), HasSubstr("outside"));
  EXPECT_THAT(ErrorOf(ModelWithCharsmap("\x01")), HasSubstr("cut off"));
  EXPECT_THAT(ErrorOf(ModelWithCharsmap(std::string("\xf0\0\0\0aaaa", 8))), HasSubstr("fit"));
}

TEST(SpmTokenizer, KnowsItsSizesWithoutTheLibrary) {
  TokenizerOptions options;
  options.type = "Llama2Tokenizer";
  options.model = GoldenModel();
  const auto tokenizer = MakeTokenizer(options);
  EXPECT_EQ(tokenizer->vocab_size(), 2000);
  EXPECT_EQ(tokenizer->eod(), 2);
  EXPECT_THROW(tokenizer->Encode("a"), TokenizerError);
  options.special_tokens = {"[INST]", "<s>", "[INST]"};
  EXPECT_THROW(MakeTokenizer(options), TokenizerError) << "needs the legacy flag";
  options.sentencepiece_legacy = true;
  EXPECT_EQ(MakeTokenizer(options)->vocab_size(), 2001);
}

TEST(SpmTokenizer, RefusesWhatTheLibraryRefuses) {
  data::testing::TempFolder folder;
  const std::string path = (folder.path() / "m.model").string();
  // Byte pieces without the flag that allows them.
  data::testing::WriteFile(path, SmallModel() + Piece("<0x0A>", SpmType::kByte));
  try {
    LoadSpm(path, {}, OpenSentencePiece);
    FAIL();
  } catch (const TokenizerError& error) {
    EXPECT_THAT(error.what(), HasSubstr(path + ": SentencePiece: "));
  }
}

TEST(SpmTokenizer, DecodesAndRefusesUnknownIds) {
  const auto tokenizer = LoadSpm(GoldenModel(), {}, OpenSentencePiece);
  const std::vector<int32_t> ids = tokenizer->Encode("In the beginning");
  EXPECT_EQ(tokenizer->Decode(ids), "In the beginning");
  EXPECT_THROW(tokenizer->Decode(std::vector<int32_t>{2000}), TokenizerError);
  EXPECT_THROW(tokenizer->Decode(std::vector<int32_t>{-1}), TokenizerError);
  EXPECT_THROW(tokenizer->Encode("\xff"), TokenizerError);
}

TEST(SpmSpaces, AreMarkedAsMegatronMarksThem) {
  const std::string mark = " \u262f ";
  EXPECT_EQ(MarkExtraSpaces("a b"), "a b");
  EXPECT_EQ(MarkExtraSpaces("a  b"), "a " + mark + " b");
  EXPECT_EQ(MarkExtraSpaces(" a"), mark + "a");
  EXPECT_EQ(MarkExtraSpaces("a "), "a \u262f");
  EXPECT_EQ(MarkExtraSpaces("a \n"), "a \u262f");
  EXPECT_EQ(PythonStrip(" \u3000a b\n\x1c"), "a b");
}

}  // namespace
}  // namespace muster::tokenizer
