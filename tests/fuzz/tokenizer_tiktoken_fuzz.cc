#include "tests/fuzz/tokenizer_fuzz.h"
#include "trainer/tokenizer/tiktoken_file.h"

// Megatron's JSON vocabulary, and tokenizer.model of base64 lines.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::tokenizer;  // NOLINT(google-build-using-namespace)
  const TiktokenOptions options{.vocab_size = 270, .num_special_tokens = 8};
  fuzz::Run(data, size, [&](const std::string& path) { return LoadTiktokenFile(path, options); });
  return 0;
}
