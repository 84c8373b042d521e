#pragma once

#include <cstdint>
#include <vector>

namespace muster::data {

// A blend without a table of its samples: a short row of data sets, repeated for ever. In each
// period data set d appears round(weight * period) times (largest remainders get the rest; at least
// once if its weight is positive), spread evenly. A value, then immutable: any thread.
class PeriodicBlend {
 public:
  struct Draw {
    int64_t dataset;
    int64_t sample;  // of that data set, counted from 0
  };

  // Weights add up to 1.
  explicit PeriodicBlend(const std::vector<double>& weights);

  Draw operator()(int64_t i) const;

 private:
  std::vector<int64_t> counts_;    // of each data set in one period
  std::vector<int32_t> dataset_;   // the period
  std::vector<int32_t> position_;  // which of the data set's draws in the period this is
};

}  // namespace muster::data
