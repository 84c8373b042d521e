#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "trainer/tokenizer/bpe_model.h"
#include "trainer/tokenizer/tokenizer.h"
#include "trainer/tokenizer/word_cache.h"

namespace muster::tokenizer {

// Encodes words with a model: one thread's scratch and cache.
class BpeEncoder {
 public:
  // As the threads get more, their caches get smaller. Long words take of the options' memory.
  explicit BpeEncoder(const BpeModel& model, const EncoderOptions& options = {});

  // Appends the ids of words (pieces of a text between splits; none is empty), one after the other.
  // All of them lie before `text_end`, up to which bytes can be read. `take`, if not null, is that
  // of Encoder::EncodeInParts, for the ids of a word that has very many.
  void Encode(std::span<const std::string_view> words, const char* text_end,
              const std::function<void()>* take, std::vector<int32_t>& ids);

  // Words that are best given to Encode at once.
  static constexpr size_t kBatch = 32;

 private:
  void EncodeBatch(std::span<const std::string_view> words, const char* text_end,
                   const std::function<void()>* take, std::vector<int32_t>& ids);
  void EncodeLong(std::string_view word, const std::function<void()>* take,
                  std::vector<int32_t>& ids);
  void Symbols(std::string_view word);
  void ByteSymbols(std::string_view word);
  void CharacterSymbols(std::string_view word);
  bool FallBack(std::string_view character);
  void AddUnknown(int32_t& waiting, std::string_view what);
  void Flush(int32_t& waiting);

  const BpeModel& model_;
  WorkMemory* const memory_;
  WordCache cache_;
  std::vector<int32_t> symbols_;
};

}  // namespace muster::tokenizer
