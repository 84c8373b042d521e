#include "trainer/loop/baselines.h"

#include <fmt/format.h>

#include <cmath>

namespace muster::loop {

UnigramEntropy EntropyOfCounts(const std::vector<int64_t>& counts) {
  UnigramEntropy result;
  for (const int64_t n : counts) result.tokens += n;
  for (const int64_t n : counts) {
    if (n == 0) continue;
    const double p = static_cast<double>(n) / static_cast<double>(result.tokens);
    result.nats_per_token -= p * std::log(p);
  }
  return result;
}

UnigramEntropy EntropyOfLabels(const data::SampleSource& source, int64_t vocab_size) {
  const auto seq = static_cast<size_t>(source.seq_length());
  std::vector<int64_t> tokens(seq + 1);
  std::vector<float> mask(seq);
  std::vector<int64_t> counts(static_cast<size_t>(vocab_size));
  for (int64_t k = 0; k < source.size(); ++k) {
    source.Get(k, tokens, mask);
    for (size_t i = 0; i < seq; ++i) {
      if (mask[i] > 0) ++counts[static_cast<size_t>(tokens[i + 1])];
    }
  }
  return EntropyOfCounts(counts);
}

std::string BaselineLines(std::optional<double> first_loss, int64_t vocab_size,
                          std::optional<double> held_out_loss, const UnigramEntropy& entropy) {
  std::string text;
  if (first_loss) {
    const double uniform = std::log(static_cast<double>(vocab_size));
    text += fmt::format(
        " baseline: first loss {:.4f} | ln(V) {:.4f} with V = {} | difference {:+.2f} %\n",
        *first_loss, uniform, vocab_size, 100 * (*first_loss / uniform - 1));
  }
  if (held_out_loss && entropy.tokens > 0) {
    text += fmt::format(
        " baseline: held-out loss {:.4f} | unigram entropy of the validation split {:.4f} "
        "nats/token ({} tokens) | {}\n",
        *held_out_loss, entropy.nats_per_token, entropy.tokens,
        *held_out_loss < entropy.nats_per_token ? "below" : "NOT below");
  }
  return text;
}

}  // namespace muster::loop
