#include "trainer/tokenizer/sentencepiece_engine.h"

#include <sentencepiece_processor.h>

#include <exception>

#include "trainer/tokenizer/tokenizer.h"

namespace muster::tokenizer {
namespace {

void Check(const sentencepiece::util::Status& status) {
  if (!status.ok()) throw TokenizerError("SentencePiece: " + status.ToString());
}

class SentencePieceEngine : public SpmEngine {
 public:
  explicit SentencePieceEngine(const std::string& model) {
    try {
      Check(processor_.LoadFromSerializedProto(model));
    } catch (const TokenizerError&) {
      throw;
    } catch (const std::exception& error) {  // of the trie that it builds
      throw TokenizerError(std::string("SentencePiece: ") + error.what());
    }
  }

  void Encode(std::string_view text, std::vector<int32_t>& ids) const override {
    std::vector<int> encoded;
    Check(processor_.Encode({text.data(), text.size()}, &encoded));
    ids.insert(ids.end(), encoded.begin(), encoded.end());
  }

  std::string Decode(const std::vector<int32_t>& ids) const override {
    std::string text;
    Check(processor_.Decode(std::vector<int>(ids.begin(), ids.end()), &text));
    return text;
  }

 private:
  sentencepiece::SentencePieceProcessor processor_;
};

}  // namespace

std::unique_ptr<SpmEngine> OpenSentencePiece(const std::string& model) {
  return std::make_unique<SentencePieceEngine>(model);
}

}  // namespace muster::tokenizer
