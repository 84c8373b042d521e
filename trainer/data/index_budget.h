#pragma once

#include <cstdint>
#include <string>

namespace muster::data {

// What Megatron's order will take, before it is built.
struct IndexCost {
  int64_t documents = 0;      // entries of all document indices
  int64_t samples = 0;        // of all sample and shuffle indices
  int64_t blend_draws = 0;    // of all blends
  int64_t blend_choices = 0;  // draws * data sets: each draw looks at all of them
  int64_t bytes = 0;          // of all arrays

  // An estimate for one core, from random draws that are measured now (at most some 50 ms).
  double Seconds() const;
};

// "12.5 GiB", "3.1 MiB".
std::string BytesText(int64_t bytes);

// One line for people: memory, time and the limit.
std::string CostText(const IndexCost& cost, int64_t limit);

// Throws DataError with the figures and the fix when it takes more than `limit` bytes.
void CheckBudget(const IndexCost& cost, int64_t limit);

}  // namespace muster::data
