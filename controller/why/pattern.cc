#include "controller/why/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <absl/strings/str_cat.h>
#include <pcre2.h>

#include <utility>

#include "common/status.h"

namespace muster::why {
namespace {

// About 50 ms of matching on a slow core, and no deep recursion of the engine.
constexpr uint32_t kMatchLimit = 1'000'000;
constexpr uint32_t kDepthLimit = 20'000;
constexpr uint32_t kHeapLimitKib = 16 * 1024;
constexpr size_t kMaxRegex = 4096;

using MatchData = std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)>;

std::string ErrorText(int code) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

struct Pattern::Code {
  explicit Code(pcre2_code* compiled)
      : code(compiled), limits(pcre2_match_context_create(nullptr)) {
    pcre2_set_match_limit(limits, kMatchLimit);
    pcre2_set_depth_limit(limits, kDepthLimit);
    pcre2_set_heap_limit(limits, kHeapLimitKib);
  }
  ~Code() {
    pcre2_match_context_free(limits);
    pcre2_code_free(code);
  }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  // Whether `text` has a match; where, goes into `match`.
  absl::StatusOr<bool> Match(std::string_view text, pcre2_match_data* match) const {
    const int found = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0,
                                  0, match, limits);
    if (found == PCRE2_ERROR_NOMATCH) return false;
    if (found < 0) return absl::ResourceExhaustedError(ErrorText(found));
    return true;
  }

  pcre2_code* const code;
  pcre2_match_context* const limits;
};

absl::StatusOr<Pattern> Pattern::Compile(std::string_view regex) {
  if (regex.size() > kMaxRegex) {
    return absl::InvalidArgumentError(
        absl::StrCat("a regular expression of ", regex.size(), " bytes, at most ", kMaxRegex));
  }
  int error = 0;
  PCRE2_SIZE offset = 0;
  // The text is bytes: what ranks write need not be UTF-8.
  pcre2_code* const code = pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(regex.data()), regex.size(),
      PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_NEVER_UTF, &error, &offset, nullptr);
  if (code == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(ErrorText(error), " at character ", offset + 1,
                                                   " of '", std::string(regex), "'"));
  }
  return Pattern(std::make_shared<const Code>(code));
}

absl::StatusOr<bool> Pattern::Matches(std::string_view text) const {
  // No groups are asked for.
  const MatchData match(pcre2_match_data_create(1, nullptr), &pcre2_match_data_free);
  return code_->Match(text, match.get());
}

absl::StatusOr<std::optional<Pattern::Found>> Pattern::Search(std::string_view text) const {
  const MatchData match(pcre2_match_data_create_from_pattern(code_->code, nullptr),
                        &pcre2_match_data_free);
  MUSTER_ASSIGN_OR_RETURN(const bool found, code_->Match(text, match.get()));
  if (!found) return std::nullopt;
  const PCRE2_SIZE* const bounds = pcre2_get_ovector_pointer(match.get());
  Found out;
  for (size_t i = 0; i < pcre2_get_ovector_count(match.get()); ++i) {
    const PCRE2_SIZE begin = bounds[2 * i];
    const PCRE2_SIZE end = bounds[2 * i + 1];
    const bool took_part = begin != PCRE2_UNSET && begin <= end;
    out.groups.emplace_back(took_part ? text.substr(begin, end - begin) : std::string_view());
  }
  return out;
}

}  // namespace muster::why
