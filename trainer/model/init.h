#pragma once

#include <cstdint>
#include <string_view>

// Initial weights that depend on the seed, the parameter's name and the element's index alone, so a
// rank that holds a slice draws the values that a rank with the whole tensor would: the same model
// whatever the parallel layout.

namespace muster::model {

// out[j] = std_dev * N(0, 1) for element first_index + j of the whole tensor `name`.
//
// key = splitmix64(seed ^ fnv1a64(name)). Elements 2p and 2p + 1 are the cosine and sine branch of
// a Box-Muller pair of uniforms from splitmix64 at counters key + 2p and key + 2p + 1 (53 bits; the
// first from (0, 1]).
void FillNormal(uint64_t seed, std::string_view name, double std_dev, int64_t first_index,
                int64_t count, float* out);

}  // namespace muster::model
