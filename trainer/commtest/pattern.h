#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <vector>

#include "trainer/commtest/collective.h"

// Data that shows what went wrong: every rank, element and call has its own values, small whole
// numbers whose sums are exact in every type (for up to a million ranks). CPU tensors. Pure.

namespace muster::commtest {

inline constexpr int64_t kPeriod = 17;

// `count` elements of a repeating row: element i is values[(offset + i) % kPeriod].
struct Piece {
  int64_t count = 0;
  int64_t offset = 0;
  std::array<int64_t, kPeriod> values{};
};
using Content = std::vector<Piece>;

// What `rank` gives in call number `call`.
Content Given(int64_t rank, int64_t count, int64_t call);
// What `rank` of `ranks` must have afterwards.
Content Expected(Collective collective, int64_t rank, int64_t ranks, const Shape& shape,
                 int64_t call);
// The root of a broadcast: all ranks in turn.
int64_t RootOf(int64_t call, int64_t ranks);

at::ScalarType ToTorch(Type type);
void Fill(at::Tensor& tensor, const Content& content);
// How many elements differ.
int64_t CountWrong(const at::Tensor& tensor, const Content& content);

}  // namespace muster::commtest
