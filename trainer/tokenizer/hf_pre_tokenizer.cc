#include "trainer/tokenizer/hf_pre_tokenizer.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "trainer/tokenizer/marker_splitter.h"
#include "trainer/tokenizer/match_splitter.h"
#include "trainer/tokenizer/tokenizer.h"
#include "trainer/tokenizer/utf8.h"

namespace muster::tokenizer {
namespace {

constexpr char kGpt2Pattern[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// A splitter, its errors with the place in the file.
std::unique_ptr<Splitter> SplitterAt(const JsonView& place, const std::string& pattern,
                                     MatchBehavior behavior, bool invert) {
  try {
    return MakeMatchSplitter(pattern, behavior, invert);
  } catch (const TokenizerError& error) {
    place.Fail(error.what());
  }
}

MatchBehavior ReadBehavior(const JsonView& behavior) {
  static constexpr std::pair<std::string_view, MatchBehavior> kNames[] = {
      {"Isolated", MatchBehavior::kIsolated},
      {"Removed", MatchBehavior::kRemoved},
      {"MergedWithPrevious", MatchBehavior::kMergedWithPrevious},
      {"MergedWithNext", MatchBehavior::kMergedWithNext},
      {"Contiguous", MatchBehavior::kContiguous}};
  const std::string text = behavior.Text();
  for (const auto& [name, value] : kNames) {
    if (name == text) return value;
  }
  behavior.Fail(fmt::format(
      "'{}' is none of Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous", text));
}

// {"Regex": "..."} or {"String": "..."}, as a regular expression.
std::string ReadPattern(const JsonView& pattern) {
  if (const auto regex = pattern.Find("Regex")) return regex->Text();
  if (const auto text = pattern.Find("String")) {
    if (text->Text().empty()) text->Fail("is empty");
    return EscapePattern(text->Text());
  }
  pattern.Fail("is neither a Regex nor a String");
}

PreStep LoadMetaspace(const JsonView& step) {
  const std::string marker = step.At("replacement").Text();
  size_t end = 0;
  if (!marker.empty()) NextCodePoint(marker, end);
  if (marker.empty() || end != marker.size()) {
    step.At("replacement").Fail("is not one character");
  }
  // Older files have add_prefix_space.
  const bool prefix = step.BoolOr("add_prefix_space", true);
  std::string scheme = prefix ? "always" : "never";
  if (const auto given = step.Find("prepend_scheme")) {
    scheme = given->Text();
    if (scheme != "always" && scheme != "never" && scheme != "first") {
      given->Fail(fmt::format("'{}' is none of always, first, never", scheme));
    }
    if (!prefix && scheme != "never") given->Fail("contradicts add_prefix_space");
  }
  PreStep loaded;
  loaded.rewrite = MakeReplace(" ", marker);
  if (scheme != "never") loaded.prefix = marker;
  loaded.prefix_only_first = scheme == "first";
  if (step.BoolOr("split", true)) loaded.splitter = std::make_unique<MarkerSplitter>(marker, false);
  return loaded;
}

void AddStep(const JsonView& step, PreTokenizer& out) {
  const std::string type = step.Type();
  if (type == "Sequence") {
    for (const JsonView& inner : step.At("pretokenizers").Items()) AddStep(inner, out);
    return;
  }
  if (out.byte_level) step.Fail("a step after ByteLevel is not supported");
  PreStep loaded;
  if (type == "Split") {
    loaded.splitter = SplitterAt(step.At("pattern"), ReadPattern(step.At("pattern")),
                                 ReadBehavior(step.At("behavior")), step.BoolOr("invert", false));
  } else if (type == "Digits") {
    const bool single = step.BoolOr("individual_digits", false);
    loaded.splitter =
        SplitterAt(step, single ? "\\p{N}" : "\\p{N}+", MatchBehavior::kIsolated, false);
  } else if (type == "Metaspace") {
    loaded = LoadMetaspace(step);
  } else if (type == "ByteLevel") {
    out.byte_level = true;
    if (step.BoolOr("add_prefix_space", true)) loaded.prefix.assign(1, ' ');
    if (step.BoolOr("use_regex", true)) {
      loaded.splitter = SplitterAt(step, kGpt2Pattern, MatchBehavior::kIsolated, false);
    }
  } else {
    step.At("type").Fail(fmt::format(
        "'{}' is not supported (Sequence, Split, Digits, Metaspace, ByteLevel are)", type));
  }
  out.steps.push_back(std::move(loaded));
}

}  // namespace

PreTokenizer LoadPreTokenizer(const JsonView& pre_tokenizer) {
  PreTokenizer loaded;
  AddStep(pre_tokenizer, loaded);
  return loaded;
}

std::unique_ptr<Normalizer> LoadNormalizer(const JsonView& normalizer) {
  const std::string type = normalizer.Type();
  if (auto form = MakeUnicodeForm(type)) return form;
  if (type == "Sequence") {
    std::vector<std::unique_ptr<Normalizer>> steps;
    for (const JsonView& inner : normalizer.At("normalizers").Items()) {
      steps.push_back(LoadNormalizer(inner));
    }
    return MakeSequence(std::move(steps));
  }
  if (type == "Prepend") return MakePrepend(normalizer.At("prepend").Text());
  if (type == "Strip") {
    return MakeStrip(normalizer.BoolOr("strip_left", true), normalizer.BoolOr("strip_right", true));
  }
  if (type == "Replace") {
    const auto text = normalizer.At("pattern").Find("String");
    if (!text || text->Text().empty()) {
      normalizer.At("pattern").Fail("only a String that is not empty is supported");
    }
    return MakeReplace(text->Text(), normalizer.At("content").Text());
  }
  normalizer.At("type").Fail(fmt::format(
      "'{}' is not supported (NFC, NFD, NFKC, NFKD, Prepend, Replace, Strip, Sequence are)", type));
}

}  // namespace muster::tokenizer
