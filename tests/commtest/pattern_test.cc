#include "trainer/commtest/pattern.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace muster::commtest {
namespace {

// What each rank gives, as the tensor holds it.
std::vector<at::Tensor> GivenByAll(int64_t ranks, int64_t count, int64_t call, Type type) {
  std::vector<at::Tensor> out;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    out.push_back(at::zeros({count}, ToTorch(type)));
    Fill(out.back(), Given(rank, count, call));
  }
  return out;
}

// Expected against what the collective means, computed element by element.
TEST(Pattern, ExpectedIsWhatTheCollectiveMeans) {
  for (const Type type : AllTypes()) {
    for (const int64_t ranks : {1, 2, 5, 20}) {
      for (const Collective collective : AllCollectives()) {
        const int64_t call = 7;
        const Shape shape = ShapeOf(collective, type, 1000, ranks);
        const auto given = GivenByAll(ranks, shape.sent, call, type);
        for (int64_t rank = 0; rank < ranks; ++rank) {
          at::Tensor want = at::zeros({shape.received}, ToTorch(type));
          for (int64_t r = 0; r < ranks; ++r) {
            const at::Tensor& other = given[static_cast<size_t>(r)];
            switch (collective) {
              case Collective::kAllReduce:
                want += other;
                break;
              case Collective::kReduceScatter:
                want += other.narrow(0, rank * shape.received, shape.received);
                break;
              case Collective::kAllGather:
                want.narrow(0, r * shape.sent, shape.sent).copy_(other);
                break;
              case Collective::kBroadcast:
                if (r == RootOf(call, ranks)) want.copy_(other);
                break;
              case Collective::kSendReceive:
                if ((r + 1) % ranks == rank) want.copy_(other);
                break;
            }
          }
          EXPECT_EQ(CountWrong(want, Expected(collective, rank, ranks, shape, call)), 0)
              << Name(collective) << " " << Name(type) << " " << ranks << " ranks, rank " << rank;
        }
      }
    }
  }
}

TEST(Pattern, EveryFaultShows) {
  at::Tensor tensor = at::zeros({1000}, at::kFloat);
  Fill(tensor, Given(3, 1000, 2));
  EXPECT_EQ(CountWrong(tensor, Given(3, 1000, 2)), 0);
  // Another rank's data, or the last call's, is wrong everywhere; so is data that is shifted.
  EXPECT_EQ(CountWrong(tensor, Given(4, 1000, 2)), 1000);
  EXPECT_EQ(CountWrong(tensor, Given(3, 1000, 1)), 1000);
  at::Tensor shifted = at::zeros({1000}, at::kFloat);
  shifted.narrow(0, 0, 999).copy_(tensor.narrow(0, 1, 999));
  EXPECT_GE(CountWrong(shifted, Given(3, 1000, 2)), 999);
  tensor.data_ptr<float>()[123] += 1;
  EXPECT_EQ(CountWrong(tensor, Given(3, 1000, 2)), 1);
}

}  // namespace
}  // namespace muster::commtest
