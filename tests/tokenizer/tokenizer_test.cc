// Parts of the tokenizers that need no reference, and files that must be refused.
#include "trainer/tokenizer/tokenizer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/data/golden.h"
#include "trainer/tokenizer/byte_level.h"
#include "trainer/tokenizer/factory.h"
#include "trainer/tokenizer/llama3_splitter.h"
#include "trainer/tokenizer/null_tokenizer.h"
#include "trainer/tokenizer/regex_matcher.h"
#include "trainer/tokenizer/tiktoken_file.h"
#include "trainer/tokenizer/tokenizer_json.h"
#include "trainer/tokenizer/utf8.h"

namespace muster::tokenizer {
namespace {

using data::testing::ReadFile;
using data::testing::ReadJson;
using data::testing::TempFolder;
using data::testing::WriteFile;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string TinyFile() {
  return (data::testing::GoldenRoot() / "../../recipes/tiny_tokenizer/tokenizer.json").string();
}

std::string MessageOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const TokenizerError& error) {
    return error.what();
  }
  return "(no TokenizerError)";
}

std::string RandomText(std::mt19937& random) {
  std::string text;
  for (auto n = random() % 60; n > 0; --n) {
    static constexpr uint32_t kLimits[] = {0x80, 0x80, 0x300, 0x10000, 0x110000};
    const uint32_t c = static_cast<uint32_t>(random()) % kLimits[random() % 5];
    if (c < 0xd800 || c > 0xdfff) AppendUtf8(random() % 4 == 0 ? ' ' : c, text);
  }
  return text;
}

TEST(ByteLevel, EveryByteHasItsOwnCharacter) {
  for (int byte = 0; byte < 256; ++byte) {
    std::string character;
    AppendUtf8(ByteToCodePoint(static_cast<uint8_t>(byte)), character);
    EXPECT_EQ(DecodeByteLevel(character), std::string(1, static_cast<char>(byte)));
  }
  EXPECT_FALSE(DecodeByteLevel("a b").has_value()) << "a plain space stands for no byte";
}

TEST(Utf8, RefusesWhatIsNotUtf8) {
  for (const std::string bad : {"\x80", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80",
                                "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xe4\xb8", "\xff"}) {
    EXPECT_EQ(ValidUtf8Prefix("12345678ab" + bad), 10);
  }
  EXPECT_EQ(ValidUtf8Prefix("a\u00e9\u4e2d\U0001f642"), 10);
}

// The scanner by hand against the pattern that it stands for.
TEST(Llama3Splitter, IsItsPattern) {
  std::mt19937 random(3);
  Llama3Splitter scanner;
  RegexMatcher pattern(Llama3Splitter::kPattern);
  for (int i = 0; i < 20000; ++i) {
    const std::string text = RandomText(random);
    for (size_t at = 0; at < text.size();) {
      const RegexMatcher::Part want = pattern.Next(text, at);
      const Piece got = scanner.Next(text, at);
      ASSERT_EQ(got.end, want.end) << nlohmann::json(text) << " at " << at;
      at = got.end;
    }
  }
}

TEST(TokenizerJson, DecodesWhatItEncoded) {
  const auto tokenizer = LoadTokenizerJson(TinyFile(), {.include_special_tokens = false});
  EXPECT_EQ(tokenizer->vocab_size(), 2048);
  EXPECT_EQ(tokenizer->eod(), 1);
  std::mt19937 random(5);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = RandomText(random);
    EXPECT_EQ(tokenizer->Decode(tokenizer->Encode(text)), text);
  }
  EXPECT_THROW(tokenizer->Decode(std::vector<int32_t>{2048}), TokenizerError);
  EXPECT_THROW(tokenizer->Decode(std::vector<int32_t>{-1}), TokenizerError);
}

TEST(TokenizerJson, InvalidUtf8IsRefusedByItsByte) {
  const auto tokenizer = LoadTokenizerJson(TinyFile(), {});
  for (const std::string bad : {"\xff", "\xed\xa0\x80", "\xc0\xaf", "\xe4\xb8"}) {
    EXPECT_THAT(MessageOf([&] { tokenizer->Encode("abc" + bad); }),
                HasSubstr("byte 3 of the text is not valid UTF-8"));
  }
}

TEST(TokenizerJson, TruncatedFilesAreRefusedByName) {
  TempFolder folder;
  const std::string path = (folder.path() / "tokenizer.json").string();
  const std::string whole = ReadFile(TinyFile());
  for (size_t size = 0; size < whole.size() - 2; size += 1 + whole.size() / 150) {
    WriteFile(path, whole.substr(0, size));
    EXPECT_THAT(MessageOf([&] { LoadTokenizerJson(path, {}); }), HasSubstr(path)) << size;
  }
}

// Any value of the file replaced by one of another kind: refused, or loaded, but never worse.
TEST(TokenizerJson, WrongKindsOfValuesAreRefused) {
  TempFolder folder;
  const std::string path = (folder.path() / "tokenizer.json").string();
  nlohmann::json whole = ReadJson(TinyFile());
  const nlohmann::json flat = whole.flatten();
  int tried = 0;
  for (const auto& [pointer, value] : flat.items()) {
    if (pointer.starts_with("/model/vocab") || pointer.starts_with("/model/merges")) {
      if (tried++ % 400 != 0) continue;
    }
    for (const nlohmann::json& wrong :
         {nlohmann::json(-7), nlohmann::json("no"), nlohmann::json::array(), nlohmann::json(1e300),
          nlohmann::json(nullptr), nlohmann::json::object(), nlohmann::json(99999999)}) {
      nlohmann::json damaged = whole;
      damaged[nlohmann::json::json_pointer(pointer)] = wrong;
      WriteFile(path, damaged.dump());
      try {
        LoadTokenizerJson(path, {})->Encode("In the beginning");
      } catch (const TokenizerError& error) {
        EXPECT_THAT(error.what(), HasSubstr(path));
      }
    }
  }
}

TEST(TokenizerJson, SaysWhatIsNotSupported) {
  TempFolder folder;
  const std::string path = (folder.path() / "tokenizer.json").string();
  const auto error_with = [&](const std::string& pointer, const nlohmann::json& value) {
    nlohmann::json changed = ReadJson(TinyFile());
    changed[nlohmann::json::json_pointer(pointer)] = value;
    WriteFile(path, changed.dump());
    return MessageOf([&] { LoadTokenizerJson(path, {}); });
  };
  EXPECT_THAT(error_with("/model/type", "Unigram"), HasSubstr("model.type: 'Unigram'"));
  EXPECT_THAT(error_with("/normalizer", {{"type", "Lowercase"}}),
              HasSubstr("normalizer.type: 'Lowercase' is not supported (NFC,"));
  EXPECT_THAT(error_with("/pre_tokenizer", {{"type", "Whitespace"}}),
              HasSubstr("pre_tokenizer.type: 'Whitespace' is not supported (Sequence,"));
  EXPECT_THAT(error_with("/pre_tokenizer/pretokenizers/2", {{"type", "Digits"}}),
              HasSubstr("pre_tokenizer.pretokenizers[2]: a step after ByteLevel"));
  EXPECT_THAT(error_with("/post_processor", {{"type", "Other"}}),
              HasSubstr("post_processor.type: 'Other'"));
  EXPECT_THAT(error_with("/added_tokens/0", {{"id", 0}}),
              HasSubstr("added_tokens[0]: 'content' is missing"));
  EXPECT_THAT(error_with("/model/merges/0", {"zzzz", "q"}), HasSubstr("model.merges[0]"));
  EXPECT_THAT(error_with("/pre_tokenizer/pretokenizers/0/pattern/Regex", "a(b"),
              HasSubstr("split pattern 'a(b'"));
  EXPECT_THAT(error_with("/model/dropout", 0.1), HasSubstr("model.dropout"));
}

TEST(TiktokenFile, WrongVocabulariesAreRefusedByName) {
  TempFolder folder;
  const std::string path = (folder.path() / "vocab").string();
  const auto error_with = [&](const std::string& content) {
    WriteFile(path, content);
    return MessageOf([&] { LoadTiktokenFile(path, {}); });
  };
  EXPECT_THAT(error_with("[{\"rank\": 0"), HasSubstr(path));
  EXPECT_THAT(error_with("[]"), HasSubstr("0 tokens and 1000 special ones are not --vocab-size"));
  EXPECT_THAT(error_with(R"([{"rank": 1, "token_bytes": "AA=="}])"), HasSubstr("another rank"));
  // Numbers that no integer holds, and no numbers.
  for (const char* rank : {"6.47778e+128", "-1", "0.5", "\"0\"", "null"}) {
    EXPECT_THAT(error_with(fmt::format(R"([{{"rank": {}, "token_bytes": "AA=="}}])", rank)),
                HasSubstr("another rank"));
  }
  EXPECT_THAT(error_with(R"([{"rank": 0, "token_bytes": "AQ=="}])"), HasSubstr("entry 0"));
  EXPECT_THAT(error_with(R"([{"rank": 0, "token_bytes": 7}])"), HasSubstr(path));
  EXPECT_THAT(error_with("AA== 0\nAQ== 2\n"), HasSubstr("line 2 is not 'base64 1'"));
  EXPECT_THAT(error_with("?? 0\n"), HasSubstr("not base64"));
  EXPECT_THAT(error_with("AA== 0\n"), HasSubstr("the byte 1 is no token"));
  EXPECT_THAT(MessageOf([] { LoadTiktokenFile("/nowhere", {}); }), HasSubstr("open /nowhere"));
}

TEST(TokenizerJson, PaddingIsATokenThatMeansNothingElse) {
  const TempFolder folder;
  std::filesystem::copy(TinyFile(), folder.path());
  const auto pad_of = [&folder](const nlohmann::json& config) {
    std::ofstream(folder.path() / "tokenizer_config.json") << config;
    return LoadTokenizerJson(folder.path().string(), {})->pad();
  };
  const auto pad = pad_of({{"pad_token", "<|pad|>"}, {"eos_token", "<|end_of_text|>"}});
  ASSERT_TRUE(pad);
  EXPECT_EQ(pad_of({{"pad_token", "<|pad|>"}}), pad);
  EXPECT_EQ(pad_of({{"pad_token", "<|end_of_text|>"}, {"eos_token", "<|end_of_text|>"}}),
            std::nullopt);
  EXPECT_EQ(pad_of({{"pad_token", "<|pad|>"}, {"unk_token", "<|pad|>"}}), std::nullopt);
  EXPECT_EQ(pad_of({{"eos_token", "<|end_of_text|>"}}), std::nullopt);
}

TEST(NullTokenizer, TakesWhatPythonsIntTakes) {
  const NullTokenizer tokenizer(1000);
  EXPECT_EQ(tokenizer.eod(), 999);
  EXPECT_THAT(tokenizer.Encode("1 +2 -3 1_000 007 \t8\n"), ElementsAre(1, 2, -3, 1000, 7, 8));
  EXPECT_THAT(tokenizer.Encode("\u0661\u0662 \u00a05\u3000"), ElementsAre(12, 5));
  for (const std::string bad :
       {"", " ", "1  2", "1__0", "_1", "1_", "0x1", "1.0", "- 1", "+", "\u00b2", "99999999999"}) {
    EXPECT_THROW(tokenizer.Encode(bad), TokenizerError) << bad;
  }
  EXPECT_EQ(tokenizer.Decode(std::vector<int32_t>{5, 6}), "5 6");
}

TEST(ByteTokenizer, IsTheBytes) {
  TokenizerOptions options;
  options.type = "ByteLevelTokenizer";
  const auto tokenizer = MakeTokenizer(options);
  EXPECT_EQ(tokenizer->vocab_size(), 512);
  EXPECT_EQ(tokenizer->eod(), 0);
  EXPECT_EQ(tokenizer->pad(), 1);
  EXPECT_THAT(tokenizer->Encode("a\u00e9"), ElementsAre('a', 0xc3, 0xa9));
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode("a\u00e9")), "a\u00e9");
  EXPECT_THROW(tokenizer->Decode(std::vector<int32_t>{256}), TokenizerError);
  EXPECT_THROW(tokenizer->Encode("\xff"), TokenizerError);
  options.vocab_size = 255;
  EXPECT_THROW(MakeTokenizer(options), TokenizerError);
}

void MakeBare(const std::string& type) {
  TokenizerOptions options;
  options.type = type;
  MakeTokenizer(options);
}

TEST(MakeTokenizer, NamesTheNearestType) {
  EXPECT_THAT(MessageOf([] { MakeBare("HugingFaceTokenizer"); }),
              HasSubstr("did you mean 'HuggingFaceTokenizer'"));
  EXPECT_THAT(MessageOf([] { MakeBare("HuggingFaceTokenizer"); }), HasSubstr("--tokenizer-model"));
  EXPECT_THAT(MessageOf([] { MakeBare("NullTokenizer"); }), HasSubstr("--vocab-size"));
  TokenizerOptions hub;
  hub.type = "HuggingFaceTokenizer";
  hub.model = "someone/some-model";
  EXPECT_THAT(MessageOf([&] { MakeTokenizer(hub); }),
              AllOf(HasSubstr("someone/some-model"), HasSubstr("hub are not downloaded")));
}

TEST(MakeTokenizer, RefusesTheSentencePieceFlagsThatItWouldIgnore) {
  for (const char* type : {"HuggingFaceTokenizer", "TikTokenizer", "GPT2BPETokenizer",
                           "ByteLevelTokenizer", "NullTokenizer"}) {
    TokenizerOptions options;
    options.type = type;
    options.vocab_size = 1000;
    options.special_tokens = {"<a>"};
    EXPECT_THAT(MessageOf([&] { MakeTokenizer(options); }),
                AllOf(HasSubstr("--tokenizer-special-tokens"), HasSubstr(type)));
    options.special_tokens.clear();
    options.sentencepiece_legacy = true;
    EXPECT_THAT(MessageOf([&] { MakeTokenizer(options); }),
                HasSubstr("--tokenizer-sentencepiece-legacy"));
  }
}

}  // namespace
}  // namespace muster::tokenizer
