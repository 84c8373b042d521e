#include "trainer/parallel/topology.h"

namespace muster::parallel {

int64_t RankOf(const ParallelSizes& sizes, const Coordinate& c) {
  return c.tensor + sizes.tensor * (c.context + sizes.context * (c.data + sizes.data * c.pipeline));
}

Coordinate CoordinateOf(const ParallelSizes& sizes, int64_t rank) {
  Coordinate c;
  c.tensor = rank % sizes.tensor;
  rank /= sizes.tensor;
  c.context = rank % sizes.context;
  rank /= sizes.context;
  c.data = rank % sizes.data;
  c.pipeline = rank / sizes.data;
  return c;
}

std::vector<int64_t> GroupOf(const ParallelSizes& sizes, const GroupDims& dims, int64_t rank) {
  const Coordinate mine = CoordinateOf(sizes, rank);
  std::vector<int64_t> ranks;
  for (int64_t other = 0; other < sizes.world(); ++other) {
    const Coordinate c = CoordinateOf(sizes, other);
    if ((dims.tensor || c.tensor == mine.tensor) && (dims.context || c.context == mine.context) &&
        (dims.data || c.data == mine.data) && (dims.pipeline || c.pipeline == mine.pipeline)) {
      ranks.push_back(other);
    }
  }
  return ranks;
}

}  // namespace muster::parallel
