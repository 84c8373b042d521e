#include "trainer/tokenizer/regex_matcher.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <utility>

#include "trainer/tokenizer/tokenizer.h"
#include "trainer/tokenizer/utf8.h"

namespace muster::tokenizer {
namespace {

constexpr size_t kJitStackStart = size_t{32} << 10;
constexpr size_t kJitStackLimit = size_t{64} << 20;

std::string ErrorText(int code) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(code, buffer, sizeof(buffer));
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

struct RegexMatcher::Compiled {
  explicit Compiled(std::string_view pattern) {
    const std::string translated = TranslatePattern(pattern);
    int error = 0;
    PCRE2_SIZE offset = 0;
    code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                         PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
    if (code == nullptr) {
      throw TokenizerError(fmt::format("split pattern '{}': {} at character {} of '{}'", pattern,
                                       ErrorText(error), offset, translated));
    }
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // where it fails, the interpreter serves
  }
  ~Compiled() { pcre2_code_free(code); }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  pcre2_code* code = nullptr;
};

struct RegexMatcher::Scratch {
  explicit Scratch(const Compiled& compiled)
      : match(pcre2_match_data_create_from_pattern(compiled.code, nullptr)),
        context(pcre2_match_context_create(nullptr)),
        stack(pcre2_jit_stack_create(kJitStackStart, kJitStackLimit, nullptr)) {
    pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~Scratch() {
    pcre2_match_data_free(match);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  pcre2_match_data* match;
  pcre2_match_context* context;
  pcre2_jit_stack* stack;
};

RegexMatcher::RegexMatcher(std::string_view pattern)
    : RegexMatcher(std::make_shared<const Compiled>(pattern)) {}

RegexMatcher::RegexMatcher(std::shared_ptr<const Compiled> compiled)
    : compiled_(std::move(compiled)), scratch_(std::make_unique<Scratch>(*compiled_)) {}

RegexMatcher::~RegexMatcher() = default;

bool RegexMatcher::can_match_nothing() const {
  uint32_t result = 0;
  pcre2_pattern_info(compiled_->code, PCRE2_INFO_MATCHEMPTY, &result);
  return result != 0;
}

std::unique_ptr<RegexMatcher> RegexMatcher::Clone() const {
  return std::unique_ptr<RegexMatcher>(new RegexMatcher(compiled_));
}

RegexMatcher::Part RegexMatcher::Next(std::string_view text, size_t at) {
  if (at == 0) pending_begin_ = pending_end_ = 0;
  if (at == pending_begin_ && pending_end_ > at) return {pending_end_, true};
  for (size_t from = at; from < text.size();) {
    const int found =
        pcre2_match(compiled_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                    PCRE2_NO_UTF_CHECK, scratch_->match, scratch_->context);
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0) {
      throw TokenizerError("the split pattern failed on a text: " + ErrorText(found));
    }
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(scratch_->match);
    const size_t begin = bounds[0];
    const size_t end = bounds[1];
    if (begin == at && end > at) return {end, true};
    if (begin > at) {
      pending_begin_ = begin;
      pending_end_ = end;
      return {begin, false};
    }
    NextCodePoint(text, from);  // an empty match here splits nothing off
  }
  return {text.size(), false};
}

}  // namespace muster::tokenizer
