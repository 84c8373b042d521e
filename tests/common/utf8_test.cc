#include "common/utf8.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

// The definition, without a look at bytes: encodes a code point.
std::string Encode(uint32_t c) {
  const auto tail = [&c](int shift) { return static_cast<char>(0x80 | (c >> shift & 0x3f)); };
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xc0 | c >> 6), tail(0)};
  if (c < 0x10000) return {static_cast<char>(0xe0 | c >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | c >> 18), tail(12), tail(6), tail(0)};
}

bool IsScalar(uint32_t c) {
  return c < 0x110000 && (c < 0xd800 || c > 0xdfff);
}

TEST(Utf8Test, EveryScalarValueIsDecodedAndNoSurrogate) {
  for (uint32_t c = 0; c < 0x140000; ++c) {
    const std::string text = Encode(c);
    const Utf8Character character = DecodeUtf8(text + "x");
    ASSERT_EQ(character.length, IsScalar(c) ? text.size() : 0) << c;
    if (!IsScalar(c)) continue;
    ASSERT_EQ(character.code_point, c);
  }
}

TEST(Utf8Test, NoSequenceOfThreeBytesIsTakenForWhatItIsNot) {
  std::string text(3, '\0');
  for (uint32_t bytes = 0; bytes < 1u << 24; ++bytes) {
    for (int i = 0; i < 3; ++i) text[static_cast<size_t>(i)] = static_cast<char>(bytes >> 8 * i);
    const Utf8Character character = DecodeUtf8(text);
    if (character.length == 0) continue;
    ASSERT_TRUE(IsScalar(character.code_point));
    ASSERT_EQ(Encode(character.code_point), text.substr(0, character.length));
  }
}

TEST(Utf8Test, CutSequencesAreNone) {
  for (const uint32_t c : {0xe9u, 0x20acu, 0x1f600u}) {
    const std::string text = Encode(c);
    for (size_t size = 1; size < text.size(); ++size) {
      EXPECT_EQ(DecodeUtf8(std::string_view(text).substr(0, size)).length, 0u);
      EXPECT_FALSE(IsValidUtf8(text.substr(0, size)));
    }
    EXPECT_TRUE(IsValidUtf8(text));
  }
  EXPECT_TRUE(IsValidUtf8(""));
}

TEST(Utf8Test, EachByteThatIsNotPartOfUtf8IsReplaced) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(ToValidUtf8("a\xff\xe2\x82z\xe2\x82\xac"), "a" + bad + bad + bad + "z\xe2\x82\xac");
  EXPECT_EQ(ToValidUtf8("\xed\xa0\x80"), bad + bad + bad);
}

}  // namespace
}  // namespace muster
