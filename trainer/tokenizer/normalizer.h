#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace muster::tokenizer {

// Rewrites a stretch of text before it is split, as the normalizers of Hugging Face's package do.
// Immutable: any thread.
class Normalizer {
 public:
  virtual ~Normalizer() = default;

  // `text` is valid UTF-8 and stays it.
  virtual void Apply(std::string& text) const = 0;

  // At most so many times as long, about, becomes a long text, or what Apply makes on the way.
  virtual size_t growth() const { return 1; }
};

// One of Unicode's forms: "NFC", "NFD", "NFKC", "NFKD"; null for any other name.
std::unique_ptr<Normalizer> MakeUnicodeForm(std::string_view name);

// Puts `prefix` before every stretch that is not empty.
std::unique_ptr<Normalizer> MakePrepend(std::string prefix);

// Puts `content` in place of each `pattern` (not empty), from the left.
std::unique_ptr<Normalizer> MakeReplace(std::string pattern, std::string content);

// Removes white space at the ends.
std::unique_ptr<Normalizer> MakeStrip(bool left, bool right);

// One after the other.
std::unique_ptr<Normalizer> MakeSequence(std::vector<std::unique_ptr<Normalizer>> steps);

}  // namespace muster::tokenizer
