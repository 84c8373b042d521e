#pragma once

#include <memory>
#include <string>

#include "trainer/tokenizer/spm_engine.h"

namespace muster::tokenizer {

// libsentencepiece. Not together with LibTorch in one program.
std::unique_ptr<SpmEngine> OpenSentencePiece(const std::string& model);

}  // namespace muster::tokenizer
