// Which lines are accepted, against golden verdicts of Megatron's own tool.
#include "trainer/tools/json_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "tests/data/golden.h"

namespace muster::tools {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

std::string DecodeBase64(const std::string& text) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) break;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(static_cast<char>(bits >> count));
    }
  }
  return bytes;
}

using Strings = std::vector<std::string>;

// The texts of each key.
std::vector<Strings> Read(std::string line, const Strings& keys = {"text"}) {
  std::vector<Strings> read;
  for (const Texts& texts : ReadJsonLine(line, keys)) {
    read.emplace_back(texts.texts.begin(), texts.texts.end());
  }
  return read;
}

bool Accepts(const std::string& line) {
  try {
    Read(line);
    return true;
  } catch (const LineError&) {
    return false;
  }
}

TEST(ReadJsonLine, GoldenVerdicts) {
  std::istringstream lines(
      data::testing::ReadFile(data::testing::GoldenRoot() / "megatron" / "json_lines.jsonl"));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const json want = json::parse(line);
    EXPECT_EQ(Accepts(DecodeBase64(want["line_base64"])), want["accepted"].get<bool>())
        << want["name"];
  }
  EXPECT_GT(count, 40);
}

TEST(ReadJsonLine, FindsTextsByKey) {
  const auto texts =
      Read(R"({"a": {"text": "no"}, "title": "T", "text": ["x", "y\n"], "n": [1, -0.5e3]})",
           {"text", "title"});
  EXPECT_THAT(texts, ElementsAre(ElementsAre("x", "y\n"), ElementsAre("T")));
  EXPECT_THAT(Read(R"({"text":"\u0041\u00e9\ud83d\ude42\/\b\f\n\r\t\"\\"})")[0],
              ElementsAre("A\u00e9\U0001f642/\b\f\n\r\t\"\\"));
  EXPECT_THAT(Read(R"( {"te\u0078t" : "escaped key"} )")[0], ElementsAre("escaped key"));
}

TEST(ReadJsonLine, PythonsLimits) {
  const auto integer = [](size_t digits) {
    return R"({"a": )" + std::string(digits, '1') + R"(, "text": "x"})";
  };
  EXPECT_TRUE(Accepts(integer(4300)));
  EXPECT_FALSE(Accepts(integer(4301)));
  const auto nested = [](size_t depth) {
    return R"({"a": )" + std::string(depth, '[') + std::string(depth, ']') + R"(, "text": "x"})";
  };
  EXPECT_TRUE(Accepts(nested(900)));
  EXPECT_FALSE(Accepts(nested(1100)));
  EXPECT_FALSE(Accepts(R"({"a": )" + std::string(1'000'000, '[')));
}

TEST(ReadJsonLine, EveryTruncationIsRefused) {
  const std::string line =
      R"({"a": [1.5e3, {"b": null}, -Infinity], "text": "x\u00e9\n", "c": true})";
  ASSERT_TRUE(Accepts(line));
  for (size_t size = 0; size < line.size(); ++size) {
    EXPECT_FALSE(Accepts(line.substr(0, size))) << size;
  }
}

TEST(ReadJsonLine, ErrorsHaveAColumn) {
  try {
    Read(R"({"text": "x" "y"})");
    FAIL();
  } catch (const LineError& error) {
    EXPECT_EQ(error.column, 14);
    EXPECT_STREQ(error.what(), "expected ',' or '}'");
  }
}

// The two say the same of a line without an object.
TEST(FindNoObject, SaysWhatReadJsonLineSays) {
  for (const std::string line : {"", " ", "\t \r", "x", " 5", "[1]", "x\xff", "\xef\xbb\xbf{}",
                                 "{}", "{", " {\"text\": \"a\"}", "\xc2\xa0"}) {
    const auto found = FindNoObject(line);
    try {
      Read(line);
      EXPECT_FALSE(found) << line;
    } catch (const LineError& error) {
      const bool object = line.find('{') != std::string::npos || line.ends_with('\xff');
      ASSERT_EQ(found.has_value(), !object) << line;
      if (!found) continue;
      EXPECT_STREQ(found->what(), error.what()) << line;
      EXPECT_EQ(found->column, error.column) << line;
    }
  }
}

}  // namespace
}  // namespace muster::tools
