#include "trainer/model/shard.h"

#include <ATen/ops/empty.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/model/init.h"
#include "trainer/tensor/dtype.h"

namespace muster::model {

std::vector<int64_t> ShardShape(const ParameterSpec& spec, const Share& share) {
  std::vector<int64_t> shape = spec.shape;
  if (spec.split.dim < 0) return shape;
  int64_t& size = shape[static_cast<size_t>(spec.split.dim)];
  if (size % (spec.split.blocks * share.size) != 0) {
    throw std::invalid_argument(spec.name + ": " + std::to_string(size / spec.split.blocks) +
                                " does not split over " + std::to_string(share.size) +
                                " tensor-parallel ranks");
  }
  size /= share.size;
  return shape;
}

at::Tensor ShardView(const at::Tensor& whole, const Split& split, const Share& share) {
  if (split.dim < 0) return whole;
  const int64_t block = whole.size(split.dim) / split.blocks;
  const int64_t part = block / share.size;
  return whole.unflatten(split.dim, {split.blocks, block})
      .narrow(split.dim + 1, share.rank * part, part);
}

at::Tensor InitialShard(uint64_t seed, const ParameterSpec& spec, const Share& share) {
  const at::Tensor shard = at::empty(ShardShape(spec, share), at::kFloat);
  if (spec.init_std == 0) return shard.fill_(spec.init_value);
  // The shard is made of runs that are consecutive in the whole tensor: all columns of some rows,
  // or some columns of one row.
  const int64_t columns = spec.shape[1];
  const int64_t mine = shard.size(1);
  const int64_t blocks = spec.split.dim == 0 ? spec.split.blocks : 1;
  const int64_t block = spec.shape[0] / blocks, part = shard.size(0) / blocks;
  const int64_t first_row = spec.split.dim == 0 ? share.rank * part : 0;
  const int64_t first_column = spec.split.dim == 1 ? share.rank * mine : 0;
  float* out = Data<float>(shard);
  for (int64_t b = 0; b < blocks; ++b) {
    for (int64_t row = 0; row < part; ++row, out += mine) {
      FillNormal(seed, spec.name, spec.init_std,
                 (b * block + first_row + row) * columns + first_column, mine, out);
    }
  }
  return shard;
}

}  // namespace muster::model
