#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/sample_source.h"

// What a loss has to beat (--report-baselines): an untrained model gives every token the same
// probability, ln(V); a model that knows only how often each token occurs reaches the entropy of
// that distribution.

namespace muster::loop {

struct UnigramEntropy {
  double nats_per_token = 0;
  int64_t tokens = 0;
};

// Entropy of these counts, in nats. 0 without counts.
UnigramEntropy EntropyOfCounts(const std::vector<int64_t>& counts);

// Of the labels of all samples of `source`, each sample once. Token ids are below `vocab_size`.
UnigramEntropy EntropyOfLabels(const data::SampleSource& source, int64_t vocab_size);

// The lines for people: first loss against ln(V), held-out loss against the entropy of the
// validation split's own token frequencies. Losses that the run did not compute are left out.
std::string BaselineLines(std::optional<double> first_loss, int64_t vocab_size,
                          std::optional<double> held_out_loss, const UnigramEntropy& entropy);

}  // namespace muster::loop
