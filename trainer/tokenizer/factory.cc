#include "trainer/tokenizer/factory.h"

#include "common/suggest.h"
#include "trainer/tokenizer/null_tokenizer.h"
#include "trainer/tokenizer/tokenizer_json.h"

namespace muster::tokenizer {

std::unique_ptr<Tokenizer> MakeTokenizer(const TokenizerOptions& options) {
  if (options.type == "HuggingFaceTokenizer") {
    if (options.model.empty()) {
      throw TokenizerError(
          "HuggingFaceTokenizer needs --tokenizer-model: a tokenizer.json, or the folder with it");
    }
    return LoadTokenizerJson(options.model,
                             {options.hf_special_tokens, options.split_special_tokens});
  }
  if (options.type == "NullTokenizer") return std::make_unique<NullTokenizer>(options.vocab_size);
  throw TokenizerError("--tokenizer-type '" + options.type +
                       "' is none of HuggingFaceTokenizer, NullTokenizer" +
                       DidYouMean(options.type, {"HuggingFaceTokenizer", "NullTokenizer"}));
}

}  // namespace muster::tokenizer
