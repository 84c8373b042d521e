#include "trainer/kernels/qkv_packing.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

namespace muster::kernels {
namespace {

TEST(QkvPackingTest, SeparatesQueriesKeysAndValues) {
  const QkvShape shape{1, 1, 2, 2, 4};  // groups 2, heads per group 2, head dim 4
  // Grouped: q0 q1 k0 v0 q2 q3 k1 v1. Packed: q0 q1 q2 q3 k0 k1 v0 v1.
  const int64_t packed_head[] = {0, 1, 4, 6, 2, 3, 5, 7};
  for (int64_t row = 0; row < 32; ++row) {
    EXPECT_EQ(PackedQkvRow(shape, row), packed_head[row / 4] * 4 + row % 4) << row;
  }
}

TEST(QkvPackingTest, IsOneToOne) {
  for (const QkvShape& shape :
       {QkvShape{1, 1, 8, 4, 128}, QkvShape{1, 1, 1, 3, 2}, QkvShape{1, 1, 5, 1, 16}}) {
    const int64_t rows = shape.groups * (shape.heads_per_group + 2) * shape.head_dim;
    std::set<int64_t> seen;
    for (int64_t row = 0; row < rows; ++row) seen.insert(PackedQkvRow(shape, row));
    EXPECT_EQ(static_cast<int64_t>(seen.size()), rows);
    EXPECT_EQ(*seen.begin(), 0);
    EXPECT_EQ(*seen.rbegin(), rows - 1);
  }
}

}  // namespace
}  // namespace muster::kernels
