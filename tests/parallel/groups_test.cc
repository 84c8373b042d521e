#include "trainer/parallel/groups.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>

#include "tests/parallel/in_process.h"
#include "trainer/parallel/single_rank.h"

namespace muster::parallel {
namespace {

using ::testing::ElementsAre;

int64_t GlobalRank(const Groups& groups) {
  return RankOf(groups.sizes, groups.coordinate);
}

std::vector<int64_t> Members(Communicator& group, int64_t rank) {
  const at::Tensor all = at::zeros({group.size()}, at::kLong);
  group.AllGather(all, at::full({1}, rank, at::kLong));
  return {all.data_ptr<int64_t>(), all.data_ptr<int64_t>() + all.numel()};
}

TEST(Groups, EveryRankReachesItsPeers) {
  std::mutex mutex;
  std::map<int64_t, std::vector<std::vector<int64_t>>> members;
  testing::RunRanks({.tensor = 2, .context = 1, .data = 2, .pipeline = 3}, [&](const Groups& g) {
    const int64_t rank = GlobalRank(g);
    std::vector<std::vector<int64_t>> mine;
    for (Communicator* group : {g.tensor.get(), g.context.get(), g.data_context.get(),
                                g.model.get(), g.amax.get(), g.forward.get(), g.backward.get()}) {
      mine.push_back(Members(*group, rank));
    }
    if (g.embedding) mine.push_back(Members(*g.embedding, rank));
    const std::lock_guard lock(mutex);
    members[rank] = mine;
  });
  EXPECT_THAT(members[5], ElementsAre(ElementsAre(4, 5), ElementsAre(5), ElementsAre(5, 7),
                                      ElementsAre(0, 1, 4, 5, 8, 9), ElementsAre(4, 5, 6, 7),
                                      ElementsAre(1, 5, 9), ElementsAre(1, 5, 9)));
  EXPECT_THAT(members[9].back(), ElementsAre(1, 9));
}

TEST(Groups, AmaxesMayStayApartFromDataParallelRanks) {
  const Connector alone = [](const std::string&, const std::vector<int64_t>& ranks) {
    EXPECT_THAT(ranks, ElementsAre(0, 1));
    return std::make_unique<SingleRank>();
  };
  const ParallelSizes sizes = {.tensor = 2};
  EXPECT_NE(MakeGroups(sizes, 0, alone, kTensorAmaxGroup).amax, nullptr);
  EXPECT_EQ(GroupOf({.tensor = 2, .context = 2, .data = 2}, kTensorAmaxGroup, 5),
            (std::vector<int64_t>{4, 5, 6, 7}));
}

TEST(Groups, SameMembersShareAConnection) {
  std::atomic<int> opened = 0;
  const Groups groups =
      MakeGroups({.data = 4}, 2, [&](const std::string&, const std::vector<int64_t>&) {
        ++opened;
        return std::make_unique<SingleRank>();
      });
  EXPECT_EQ(opened, 1);  // of all ranks: world, data and context, amax
  EXPECT_EQ(groups.tensor->size(), 1);
  EXPECT_EQ(SingleRankGroups().world->size(), 1);
}

TEST(InProcess, AFailureEndsTheOthers) {
  EXPECT_THROW(testing::RunRanks({.data = 3},
                                 [](const Groups& groups) {
                                   if (groups.coordinate.data == 1) throw std::runtime_error("x");
                                   groups.world->Barrier();
                                 }),
               std::exception);
}

TEST(InProcess, CollectivesAndMessages) {
  testing::RunRanks({.data = 3}, [](const Groups& groups) {
    Communicator& world = *groups.world;
    const int64_t rank = world.rank();
    at::Tensor sum = at::full({2}, static_cast<double>(rank));
    world.AllReduce(sum, ReduceOp::kSum);
    EXPECT_TRUE(at::equal(sum, at::full({2}, 3.0)));
    at::Tensor max = at::full({2}, static_cast<double>(rank));
    world.AllReduce(max, ReduceOp::kMax);
    EXPECT_TRUE(at::equal(max, at::full({2}, 2.0)));
    at::Tensor text = at::full({2}, static_cast<double>(rank));
    world.Broadcast(text, 1);
    EXPECT_TRUE(at::equal(text, at::full({2}, 1.0)));
    at::Tensor slice = at::zeros({2});
    world.ReduceScatter(slice, at::arange(6, at::kFloat));
    EXPECT_TRUE(at::equal(slice, at::arange(6, at::kFloat).narrow(0, 2 * rank, 2).mul(3)));
    at::Tensor got = at::zeros({1});
    world.SendReceive(at::full({1}, static_cast<double>(rank)), (rank + 1) % 3, got,
                      (rank + 2) % 3);
    EXPECT_EQ(got.item<double>(), static_cast<double>((rank + 2) % 3));
  });
}

}  // namespace
}  // namespace muster::parallel
