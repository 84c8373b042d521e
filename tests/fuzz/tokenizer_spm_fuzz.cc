#include "tests/fuzz/tokenizer_fuzz.h"
#include "trainer/tokenizer/sentencepiece_engine.h"
#include "trainer/tokenizer/spm_tokenizer.h"

// tokenizer.model of SentencePiece: our checks, then the library on what they let through.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::tokenizer;  // NOLINT(google-build-using-namespace)
  fuzz::Run(data, size,
            [](const std::string& path) { return LoadSpm(path, {}, OpenSentencePiece); });
  return 0;
}
