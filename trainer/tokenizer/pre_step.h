#pragma once

#include <memory>
#include <string>

#include "trainer/tokenizer/normalizer.h"
#include "trainer/tokenizer/splitter.h"

namespace muster::tokenizer {

// One step between normalized text and words: what it rewrites in a piece, what it puts before it,
// and how it cuts it. Steps follow each other, each working on the pieces of the one before.
struct PreStep {
  std::unique_ptr<Normalizer> rewrite;  // null: nothing
  std::string prefix;                   // before a piece that does not start with it; empty: none
  bool prefix_only_first = false;       // only before the piece that starts the text
  std::unique_ptr<Splitter> splitter;   // null: does not cut
};

}  // namespace muster::tokenizer
