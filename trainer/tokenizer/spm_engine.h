#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace muster::tokenizer {

// The SentencePiece library behind a seam. A program that only asks a tokenizer for sizes and
// special ids does without it: the library carries a protobuf of its own, and so does LibTorch,
// which muster-train links. Any thread.
class SpmEngine {
 public:
  virtual ~SpmEngine() = default;

  // Appends the ids of valid UTF-8. Throws TokenizerError.
  virtual void Encode(std::string_view text, std::vector<int32_t>& ids) const = 0;
  virtual std::string Decode(const std::vector<int32_t>& ids) const = 0;
};

// Opens a model that ReadSpmFile has accepted. Throws TokenizerError with the library's reason.
using OpenSpmEngine = std::function<std::unique_ptr<SpmEngine>(const std::string& model)>;

}  // namespace muster::tokenizer
