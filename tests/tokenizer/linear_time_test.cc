// Texts without a place to cut, in tokenizers of several kinds: eight times the text may take eight
// times the CPU time (and some), not 64 times.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/data/golden.h"
#include "trainer/tokenizer/tokenizer_json.h"

namespace muster::tokenizer {
namespace {

using nlohmann::json;

constexpr size_t kSmall = 150'000;
constexpr size_t kFactor = 8;
// Between what n log n (9.4) and n * n (64) make of the factor.
constexpr double kLimit = 24;

double CpuSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double SecondsToEncode(const Tokenizer& tokenizer, const std::string& text) {
  const double start = CpuSeconds();
  EXPECT_FALSE(tokenizer.Encode(text).empty());
  return CpuSeconds() - start;
}

std::string Repeat(const std::string& unit, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += unit;
  return text;
}

std::string RandomLetters(size_t bytes) {
  std::mt19937 random(9);
  std::string text(bytes, 'a');
  for (char& c : text) c = static_cast<char>('a' + random() % 26);
  return text;
}

json ByteLevel(bool use_regex) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", use_regex}};
}

// The tiny tokenizer of the recipes with another way to cut a text.
struct Case {
  const char* name;
  json normalizer;
  json pre_tokenizer;  // null: the file's own, Llama 3's pattern
};

std::vector<Case> Cases() {
  const json v1 = {{"Regex",
                    R"([^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n])"
                    R"(|\s+(?!\S)|\s+)"}};
  const json split = {{"type", "Split"}, {"pattern", v1}, {"behavior", "MergedWithNext"}};
  return {{"llama3", nullptr, nullptr},
          {"gpt2", nullptr, ByteLevel(true)},
          {"whole", nullptr, ByteLevel(false)},
          {"nfc",
           {{"type", "NFC"}},
           {{"type", "Sequence"}, {"pretokenizers", {split, ByteLevel(false)}}}}};
}

std::unique_ptr<Tokenizer> Make(const Case& c) {
  const data::testing::TempFolder folder;
  const std::string path = (folder.path() / "tokenizer.json").string();
  json file = data::testing::ReadJson(data::testing::GoldenRoot() /
                                      "../../recipes/tiny_tokenizer/tokenizer.json");
  file["normalizer"] = c.normalizer;
  if (!c.pre_tokenizer.is_null()) file["pre_tokenizer"] = c.pre_tokenizer;
  data::testing::WriteFile(path, file.dump());
  return LoadTokenizerJson(path, {});
}

TEST(LongTexts, TakeLinearTime) {
  for (const Case& c : Cases()) {
    const auto tokenizer = Make(c);
    const auto expect_linear = [&](const std::string& small, const std::string& large,
                                   const std::string& what) {
      const double before =
          std::min(SecondsToEncode(*tokenizer, small), SecondsToEncode(*tokenizer, small));
      EXPECT_LT(SecondsToEncode(*tokenizer, large), kLimit * before) << c.name << ": " << what;
    };
    for (const std::string unit : {"a", " ", "=", "the", "<|", "\n", "1", "\u0301\u0316", "'s",
                                   "\U0001f642", "\u2581", "<|end_of", " a"}) {
      expect_linear(Repeat(unit, kSmall), Repeat(unit, kFactor * kSmall), unit);
    }
    expect_linear(RandomLetters(kSmall), RandomLetters(kFactor * kSmall), "letters");
  }
}

}  // namespace
}  // namespace muster::tokenizer
