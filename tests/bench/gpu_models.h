#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "trainer/config/model_config.h"
#include "trainer/data/batch.h"

// The models that GPU benchmarks train, and text for them.

namespace muster::bench {

// Llama-3-8B, or Llama-3.2-3B or -1B: "8b", "3b", "1b", on rows of `seq` tokens, in bf16. `layers`
// 0: the model's.
config::ModelConfig LlamaConfig(const std::string& name, int64_t seq, int64_t layers);

// "bf16" (nothing changes), "delayed" or "tensorwise".
void UseRecipe(const std::string& recipe, config::ModelConfig& model);

// Rows of tokens, each row's labels its own tokens one further.
class Text {
 public:
  virtual ~Text() = default;
  virtual data::Batch Next(int64_t batch, int64_t positions) = 0;
};

// Drawn as text has them: a few tokens are frequent, most are rare (Zipf).
class RandomText : public Text {
 public:
  explicit RandomText(int64_t vocab);
  data::Batch Next(int64_t batch, int64_t positions) override;

 private:
  std::discrete_distribution<int64_t> draw_;
  std::mt19937 engine_{7};
};

// The tokens of a .bin file of int32, in order and then from the start again. Throws
// std::runtime_error when it can't be read or has a token outside of the vocabulary.
class FileText : public Text {
 public:
  FileText(const std::string& file, int64_t vocab);
  data::Batch Next(int64_t batch, int64_t positions) override;

 private:
  std::vector<int32_t> tokens_;
  size_t next_ = 0;
};

}  // namespace muster::bench
