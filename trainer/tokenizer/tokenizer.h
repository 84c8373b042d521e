#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/tokenizer/work_memory.h"

namespace muster::tokenizer {

// A tokenizer file that can't be used, or a text that can't be encoded. The message names the file
// or the place.
class TokenizerError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Encodes texts on one thread; holds that thread's scratch memory. The tokenizer it came from must
// outlive it.
class Encoder {
 public:
  virtual ~Encoder() = default;

  // Appends the ids of `text`. Throws TokenizerError when the text has none: where it is not valid
  // UTF-8 the message names the byte.
  virtual void Encode(std::string_view text, std::vector<int32_t>& ids) = 0;

  // The same for a text so long that its ids shall not all be in memory: where it can, between two
  // words, it calls `take` when there are kPartIds or more, which may take them out of `ids`.
  static constexpr size_t kPartIds = size_t{1} << 21;
  virtual void EncodeInParts(std::string_view text, std::vector<int32_t>& ids,
                             const std::function<void()>& /*take*/) {
    Encode(text, ids);
  }
};

struct EncoderOptions {
  size_t threads = 1;            // that have an encoder each
  WorkMemory* memory = nullptr;  // outlives the encoder; null: as much as any text needs
};

// Immutable after construction: any thread.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual std::unique_ptr<Encoder> NewEncoder(const EncoderOptions& options) const = 0;
  std::unique_ptr<Encoder> NewEncoder() const { return NewEncoder({}); }
  // All encoders of a program together take about the scratch memory of so many.
  static constexpr size_t kFullEncoders = 64;

  // The text of `ids`, bytes as the tokens hold them (a cut character stays cut). Throws
  // TokenizerError on an id without a token.
  virtual std::string Decode(std::span<const int32_t> ids) const = 0;

  // The end-of-document token, if the tokenizer knows one.
  virtual std::optional<int32_t> eod() const = 0;

  // The padding token, if the tokenizer knows one that means nothing else: as in Megatron, one that
  // also ends documents, or begins texts, does not count as padding.
  virtual std::optional<int32_t> pad() const { return std::nullopt; }

  // As Megatron counts it; decides the width of the tokens in .bin.
  virtual int64_t vocab_size() const = 0;

  // One text with a fresh encoder: for a few texts.
  std::vector<int32_t> Encode(std::string_view text) const {
    std::vector<int32_t> ids;
    NewEncoder()->Encode(text, ids);
    return ids;
  }
};

}  // namespace muster::tokenizer
