#include "tests/fuzz/tokenizer_fuzz.h"
#include "trainer/tokenizer/tokenizer_json.h"

// tokenizer.json.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::tokenizer;  // NOLINT(google-build-using-namespace)
  fuzz::Run(data, size, [](const std::string& path) { return LoadTokenizerJson(path, {}); });
  return 0;
}
