#include "trainer/tokenizer/hf_decoder.h"

#include <charconv>
#include <string_view>

#include "trainer/tokenizer/normalizer.h"

namespace muster::tokenizer {
namespace {

void AddStep(const JsonView& step, TokenDecoder& out) {
  const std::string type = step.Type();
  if (type == "Sequence") {
    for (const JsonView& inner : step.At("decoders").Items()) AddStep(inner, out);
  } else if (type == "Replace") {
    const auto pattern = step.At("pattern").Find("String");
    if (!pattern || pattern->Text().empty() || step.At("content").Text() != " ") {
      step.Fail("only a Replace of a String by a space is supported");
    }
    out.marker = pattern->Text();
  } else if (type == "Metaspace") {
    out.marker = step.At("replacement").Text();
    const auto scheme = step.Find("prepend_scheme");
    out.strip_first_token =
        scheme ? scheme->Text() != "never" : step.BoolOr("add_prefix_space", true);
  } else if (type == "ByteFallback") {
    out.byte_fallback = true;
  } else if (type == "Strip") {
    const bool one_at_start = step.At("content").Text() == " " && step.At("start").Integer() == 1 &&
                              step.At("stop").Integer() == 0;
    if (!one_at_start) step.Fail("only one space at the start is supported");
    out.strip_space = true;
  } else if (type != "Fuse") {
    step.At("type").Fail("'" + type +
                         "' is not supported (Replace, ByteFallback, Fuse, Strip, "
                         "Metaspace, Sequence are)");
  }
}

}  // namespace

bool TokenDecoder::IsByte(const std::string& token) const {
  return byte_fallback && FallbackByte(token) >= 0;
}

std::string TokenDecoder::TextOf(const std::string& token) const {
  if (IsByte(token)) return std::string(1, static_cast<char>(FallbackByte(token)));
  std::string text = token;
  if (!marker.empty()) MakeReplace(marker, " ")->Apply(text);
  return text;
}

TokenDecoder LoadDecoder(const JsonView& decoder) {
  TokenDecoder loaded;
  AddStep(decoder, loaded);
  return loaded;
}

int FallbackByte(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int byte = -1;
  const char* end = token.data() + 5;
  if (std::from_chars(token.data() + 3, end, byte, 16).ptr != end) return -1;
  return byte;
}

}  // namespace muster::tokenizer
