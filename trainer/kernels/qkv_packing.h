#pragma once

#include <cstdint>

#include "trainer/kernels/rope.h"

// Two orders of the heads in a token's qkv row, and so of the rows of the qkv weight.
// Grouped (Megatron, checkpoints): for each group [q ... q, k, v]. Packed (GPU attention): all
// query heads, all K heads, all V heads, which strides can describe. Both have query heads in the
// same order, so a tensor-parallel rank that holds whole groups converts alone. Permuting rows
// changes no value that a row by itself has: amax, scales, Adam, and each element of y and dw are
// the same in both orders.

namespace muster::kernels {

// Where row `row` of a grouped qkv weight lies in the packed one. One to one on
// [0, groups * (heads_per_group + 2) * head_dim).
constexpr int64_t PackedQkvRow(const QkvShape& shape, int64_t row) {
  const int64_t head = row / shape.head_dim;
  const int64_t group = head / (shape.heads_per_group + 2);
  const int64_t in_group = head % (shape.heads_per_group + 2);
  const int64_t queries = shape.groups * shape.heads_per_group;
  int64_t packed = group * shape.heads_per_group + in_group;
  if (in_group == shape.heads_per_group) packed = queries + group;
  if (in_group == shape.heads_per_group + 1) packed = queries + shape.groups + group;
  return packed * shape.head_dim + row % shape.head_dim;
}

}  // namespace muster::kernels
