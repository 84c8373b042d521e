#pragma once

#include <map>
#include <memory>
#include <string>

#include "trainer/checkpoint/safetensors.h"
#include "trainer/config/model_config.h"
#include "trainer/data/batch.h"
#include "trainer/model/hf_mapping.h"
#include "trainer/model/llama.h"

// The tiny Llama of tests/golden/llama: its sizes, and the model loaded with its weights.

namespace muster::testing {

config::ModelConfig TinyConfig(config::DType dtype);

// Also from the same weights when `config` has other numerics, rope scaling or norm form.
std::unique_ptr<model::Llama> LoadTinyLlama(const config::ModelConfig& config);

// Values or gradients under Hugging Face's names.
std::map<std::string, at::Tensor> HfTensors(const config::ModelConfig& config, model::Llama& llama,
                                            model::HfKind kind);

// Rows [first, first + count) of a golden file's samples [N, 65]; the mask is all ones unless given
// (uint8 [N, 64]).
data::Batch SampleBatch(const at::Tensor& samples, const at::Tensor& mask, int64_t first,
                        int64_t count);

// ||a - b|| / ||b||, in double.
double RelativeError(const at::Tensor& a, const at::Tensor& b);

}  // namespace muster::testing
