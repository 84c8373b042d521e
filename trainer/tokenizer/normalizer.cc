#include "trainer/tokenizer/normalizer.h"

#include <algorithm>
#include <utility>

#include "trainer/tokenizer/unicode_class.h"
#include "trainer/tokenizer/utf8.h"

namespace muster::tokenizer {
namespace {

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  void Apply(std::string& text) const override {
    if (!text.empty()) text.insert(0, prefix_);
  }

 private:
  std::string prefix_;
};

class Replace : public Normalizer {
 public:
  Replace(std::string pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void Apply(std::string& text) const override {
    size_t found = text.find(pattern_);
    if (found == std::string::npos) return;
    std::string out;
    size_t at = 0;
    for (; found != std::string::npos; found = text.find(pattern_, at)) {
      out.append(text, at, found - at).append(content_);
      at = found + pattern_.size();
    }
    text = std::move(out.append(text, at));
  }

  size_t growth() const override {
    return std::max<size_t>(1, (content_.size() + pattern_.size() - 1) / pattern_.size());
  }

 private:
  std::string pattern_;
  std::string content_;
};

class Strip : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}

  void Apply(std::string& text) const override {
    const auto is_space = [&](size_t at) {
      return ClassOf(NextCodePoint(text, at)) == CharClass::kSpace;
    };
    size_t begin = 0;
    size_t end = text.size();
    while (left_ && begin < end && is_space(begin)) NextCodePoint(text, begin);
    while (right_ && begin < end && is_space(PreviousChar(text, end))) {
      end = PreviousChar(text, end);
    }
    text = text.substr(begin, end - begin);
  }

 private:
  bool left_;
  bool right_;
};

class Sequence : public Normalizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Normalizer>> steps) : steps_(std::move(steps)) {}
  void Apply(std::string& text) const override {
    for (const auto& step : steps_) step->Apply(text);
  }
  size_t growth() const override {
    size_t product = 1;
    for (const auto& step : steps_) product *= step->growth();
    return product;
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

}  // namespace

std::unique_ptr<Normalizer> MakePrepend(std::string prefix) {
  return std::make_unique<Prepend>(std::move(prefix));
}

std::unique_ptr<Normalizer> MakeReplace(std::string pattern, std::string content) {
  return std::make_unique<Replace>(std::move(pattern), std::move(content));
}

std::unique_ptr<Normalizer> MakeStrip(bool left, bool right) {
  return std::make_unique<Strip>(left, right);
}

std::unique_ptr<Normalizer> MakeSequence(std::vector<std::unique_ptr<Normalizer>> steps) {
  return std::make_unique<Sequence>(std::move(steps));
}

}  // namespace muster::tokenizer
