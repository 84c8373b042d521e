// Unicode's normal forms: utf8proc's tables, Hugging Face's (older) idea of which characters have
// any.
#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "trainer/tokenizer/normalizer.h"
#include "trainer/tokenizer/unicode_class.h"
#include "trainer/tokenizer/utf8.h"

namespace muster::tokenizer {
namespace {

#include "trainer/tokenizer/late_characters.inc"

// Characters that came to Unicode after the tables of the reference: it leaves them alone.
bool IsLate(uint32_t code) {
  const auto* after = std::upper_bound(
      std::begin(kLateCharacters), std::end(kLateCharacters), code,
      [](uint32_t value, const CodePointRange& range) { return value < range.first; });
  return after != std::begin(kLateCharacters) && code <= (after - 1)->last;
}

// Common characters that no form changes and that join no character before them.
bool IsPlain(uint32_t code, bool compose, bool compatibility) {
  if (code < 0x80) return true;
  if (code >= 0x4e00 && code <= 0x9fff) return true;
  if (!compose || compatibility) return false;
  return code < 0x300 || (code >= 0x400 && code < 0x483) || (code >= 0xac00 && code <= 0xd7a3);
}

class UnicodeForm : public Normalizer {
 public:
  UnicodeForm(bool compose, bool compatibility)
      : compose_(compose), compatibility_(compatibility) {}

  // One character may become eighteen, of 11 times its bytes, which are code points at first.
  size_t growth() const override { return compatibility_ ? 24 : 3; }

  void Apply(std::string& text) const override {
    bool plain = true;
    for (size_t at = 0; at < text.size() && plain;) {
      plain = IsPlain(NextCodePoint(text, at), compose_, compatibility_);
    }
    if (plain) return;
    std::string out;
    std::vector<utf8proc_int32_t> stretch;  // decomposed, between late characters
    for (size_t at = 0; at < text.size();) {
      const uint32_t code = NextCodePoint(text, at);
      if (IsLate(code)) {
        Finish(stretch, out);
        AppendUtf8(code, out);
      } else {
        Decompose(code, stretch);
      }
    }
    Finish(stretch, out);
    text = std::move(out);
  }

 private:
  void Decompose(uint32_t code, std::vector<utf8proc_int32_t>& stretch) const {
    constexpr size_t kLongest = 32;  // the longest decomposition has 18 characters
    const size_t before = stretch.size();
    stretch.resize(before + kLongest);
    int unused = 0;
    const auto options =
        static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | (compatibility_ ? UTF8PROC_COMPAT : 0));
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code),
                                               stretch.data() + before, kLongest, options, &unused);
    stretch.resize(before + static_cast<size_t>(std::max<utf8proc_ssize_t>(count, 0)));
  }

  // Orders the marks of each letter, composes, and appends to `out`. (utf8proc's own ordering takes
  // quadratic time in the number of marks.)
  void Finish(std::vector<utf8proc_int32_t>& stretch, std::string& out) const {
    const auto mark_class = [](utf8proc_int32_t code) {
      return utf8proc_get_property(code)->combining_class;
    };
    for (auto begin = stretch.begin(); begin != stretch.end();) {
      const auto end = std::find_if(begin, stretch.end(),
                                    [&](utf8proc_int32_t code) { return mark_class(code) == 0; });
      std::stable_sort(begin, end, [&](utf8proc_int32_t a, utf8proc_int32_t b) {
        return mark_class(a) < mark_class(b);
      });
      begin = end == stretch.end() ? end : end + 1;
    }
    auto size = static_cast<utf8proc_ssize_t>(stretch.size());
    if (compose_) {
      size = utf8proc_normalize_utf32(
          stretch.data(), size, static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
    }
    for (utf8proc_ssize_t i = 0; i < size; ++i) {
      AppendUtf8(static_cast<uint32_t>(stretch[static_cast<size_t>(i)]), out);
    }
    stretch.clear();
  }

  bool compose_;
  bool compatibility_;
};

}  // namespace

std::unique_ptr<Normalizer> MakeUnicodeForm(std::string_view name) {
  if (name == "NFC") return std::make_unique<UnicodeForm>(true, false);
  if (name == "NFD") return std::make_unique<UnicodeForm>(false, false);
  if (name == "NFKC") return std::make_unique<UnicodeForm>(true, true);
  if (name == "NFKD") return std::make_unique<UnicodeForm>(false, true);
  return nullptr;
}

}  // namespace muster::tokenizer
