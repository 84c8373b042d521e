#include "trainer/data/sample_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/data/data_error.h"

namespace muster::data {

int64_t SampleReader::Gather(int64_t sequence, int64_t offset, std::span<int64_t> out) const {
  const int64_t available = store_.lengths()[sequence] - offset;
  const int64_t count = std::min(available, static_cast<int64_t>(out.size()));
  store_.Read(sequence, offset, count, out.data());
  if (rules_.vocab_size <= 0) return count;
  for (int64_t i = 0; i < count; ++i) {
    if (out[i] < 0 || out[i] >= rules_.vocab_size) {
      throw DataError(
          fmt::format("{}: token {} is not below the vocabulary size {}: another tokenizer wrote "
                      "these files, or --vocab-size is too small",
                      store_.Where(sequence, offset + i), out[i], rules_.vocab_size));
    }
  }
  return count;
}

void SampleReader::Finish(int64_t used, std::span<int64_t> tokens,
                          std::span<float> loss_mask) const {
  std::fill(tokens.begin() + used, tokens.end(), rules_.pad);
  for (size_t i = 0; i < loss_mask.size(); ++i) {
    const bool after_eod = rules_.eod_mask_loss && tokens[i] == rules_.eod;
    loss_mask[i] = after_eod || tokens[i + 1] == rules_.pad ? 0.0F : 1.0F;
  }
  // The embedding must be able to look padding up.
  std::replace(tokens.begin(), tokens.end(), rules_.pad, int64_t{0});
}

}  // namespace muster::data
