#include "trainer/parallel/groups.h"

#include <map>
#include <stdexcept>

#include "trainer/parallel/single_rank.h"

namespace muster::parallel {
namespace {

// First and last of a pipeline.
std::vector<int64_t> Ends(const std::vector<int64_t>& pipeline) {
  if (pipeline.size() == 1) return pipeline;
  return {pipeline.front(), pipeline.back()};
}

}  // namespace

Groups MakeGroups(const ParallelSizes& sizes, int64_t rank, const Connector& connect,
                  const GroupDims& amax) {
  const auto open = [&](const char* name, const std::vector<int64_t>& ranks) {
    if (ranks.size() == 1) return std::shared_ptr<Communicator>(std::make_shared<SingleRank>());
    return std::shared_ptr<Communicator>(
        connect(std::string(name) + " of rank " + std::to_string(ranks.front()), ranks));
  };
  std::map<std::vector<int64_t>, std::shared_ptr<Communicator>> opened;
  const auto shared = [&](const char* name, const std::vector<int64_t>& ranks) {
    std::shared_ptr<Communicator>& group = opened[ranks];
    if (!group) group = open(name, ranks);
    return group;
  };
  Groups groups;
  groups.sizes = sizes;
  groups.coordinate = CoordinateOf(sizes, rank);
  const std::vector<int64_t> pipeline = GroupOf(sizes, {.pipeline = true}, rank);
  groups.world = shared(
      "world",
      GroupOf(sizes, {.tensor = true, .context = true, .data = true, .pipeline = true}, rank));
  groups.tensor = shared("tensor", GroupOf(sizes, {.tensor = true}, rank));
  groups.context = shared("context", GroupOf(sizes, {.context = true}, rank));
  groups.data_context = shared("data and context", GroupOf(sizes, kDataContextGroup, rank));
  groups.model = shared("model", GroupOf(sizes, {.tensor = true, .pipeline = true}, rank));
  groups.amax = shared("amax", GroupOf(sizes, amax, rank));
  groups.forward = open("pipeline forward", pipeline);
  groups.backward = open("pipeline backward", pipeline);
  if (groups.IsFirstStage() || groups.IsLastStage()) {
    groups.embedding = shared("embedding", Ends(pipeline));
  }
  return groups;
}

Groups SingleRankGroups() {
  return MakeGroups({}, 0, [](const std::string& name, const std::vector<int64_t>&) {
    throw std::logic_error("a rank alone has no peers for " + name);
    return std::unique_ptr<Communicator>();
  });
}

}  // namespace muster::parallel
