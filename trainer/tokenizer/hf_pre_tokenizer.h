#pragma once

#include <vector>

#include "trainer/tokenizer/json_view.h"
#include "trainer/tokenizer/normalizer.h"
#include "trainer/tokenizer/pre_step.h"

namespace muster::tokenizer {

struct PreTokenizer {
  std::vector<PreStep> steps;
  bool byte_level = false;  // the vocabulary is written in byte-level characters
};

// "pre_tokenizer" of tokenizer.json. Throws TokenizerError with the place of what is wrong or not
// supported.
PreTokenizer LoadPreTokenizer(const JsonView& pre_tokenizer);

// "normalizer" of tokenizer.json.
std::unique_ptr<Normalizer> LoadNormalizer(const JsonView& normalizer);

}  // namespace muster::tokenizer
