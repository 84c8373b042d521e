#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace muster::config {

// A command line's words, split at blanks.
inline std::vector<std::string> SplitWords(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// The least that a run needs.
inline constexpr char kTiny[] =
    "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 "
    "--max-position-embeddings 32 --micro-batch-size 1 --lr 1e-3 --train-iters 10 --vocab-size 500 "
    "--mock-data ";

}  // namespace muster::config
