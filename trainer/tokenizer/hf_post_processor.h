#pragma once

#include <cstdint>
#include <vector>

#include "trainer/tokenizer/json_view.h"

namespace muster::tokenizer {

// Ids around every text.
struct Surround {
  std::vector<int32_t> prefix;
  std::vector<int32_t> suffix;
};

// "post_processor" of tokenizer.json. Throws TokenizerError with the place of what is wrong or not
// supported.
Surround LoadPostProcessor(const JsonView& processor);

}  // namespace muster::tokenizer
