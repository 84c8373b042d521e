#include "trainer/model/init.h"

namespace muster::model {
namespace {

uint64_t Fnv1a64(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

uint64_t InitialKey(uint64_t seed, std::string_view name) {
  return SplitMix64(seed ^ Fnv1a64(name));
}

void FillNormal(uint64_t seed, std::string_view name, double std_dev, int64_t first_index,
                int64_t count, float* out) {
  const uint64_t key = InitialKey(seed, name);
  for (int64_t i = first_index; i < first_index + count; ++i) {
    out[i - first_index] = static_cast<float>(std_dev * InitialNormal(key, i));
  }
}

}  // namespace muster::model
