#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

namespace muster::tokenizer {

// A cut of a text. For a Splitter `keep` false means that this part is dropped.
struct Piece {
  size_t end;
  bool keep;
};

// Cuts a text into pieces, the first step of most tokenizers. One thread; cheap to clone.
class Splitter {
 public:
  virtual ~Splitter() = default;

  // The piece that starts at `at` < text.size(); not empty. Called with `at` rising through one
  // text, from 0.
  virtual Piece Next(std::string_view text, size_t at) = 0;

  virtual std::unique_ptr<Splitter> Clone() const = 0;
};

}  // namespace muster::tokenizer
