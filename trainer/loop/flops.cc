#include "trainer/loop/flops.h"

namespace muster::loop {

double FlopsPerIteration(const config::ModelConfig& model, int64_t samples) {
  const auto h = static_cast<double>(model.hidden_size);
  const auto f = static_cast<double>(model.ffn_hidden_size);
  const auto layers = static_cast<double>(model.num_layers);
  const auto d = static_cast<double>(model.kv_channels);
  const double q = static_cast<double>(model.num_attention_heads) * d;
  const double kv = static_cast<double>(model.num_query_groups) * d;
  const auto s = static_cast<double>(model.seq_length);
  const auto v = static_cast<double>(model.padded_vocab_size);
  const auto n = static_cast<double>(samples);

  constexpr double kPassesTimesMac = 6;  // forward, dgrad, wgrad; a multiply-accumulate counts two
  const double matrices = 3 * h * f + h * (q + 2 * kv) + q * h;
  return kPassesTimesMac * n * s * (layers * matrices + h * v) +
         kPassesTimesMac * layers * q * n * s * s;
}

}  // namespace muster::loop
