#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainer/parallel/communicator.h"
#include "trainer/parallel/topology.h"

namespace muster::parallel {

// The communicators of one rank, in Megatron's order of ranks (topology.h). Groups with the same
// members share one; a group of this rank alone is a SingleRank. One thread.
struct Groups {
  ParallelSizes sizes;
  Coordinate coordinate;

  std::shared_ptr<Communicator> world;
  std::shared_ptr<Communicator> tensor;
  std::shared_ptr<Communicator> context;
  std::shared_ptr<Communicator> data_context;  // gradients
  std::shared_ptr<Communicator> model;         // tensor x pipeline: who holds all the weights once
  std::shared_ptr<Communicator> amax;          // FP8 amaxes of one pipeline stage
  // Messages between pipeline stages, one communicator a direction: in each, messages of a pair of
  // ranks are received in the order in which they were sent.
  std::shared_ptr<Communicator> forward;
  std::shared_ptr<Communicator> backward;
  // First and last stage, who share a tied embedding; null on the stages between them.
  std::shared_ptr<Communicator> embedding;

  bool IsFirstStage() const { return coordinate.pipeline == 0; }
  bool IsLastStage() const { return coordinate.pipeline == sizes.pipeline - 1; }
  // One of the ranks that hold equal loss sums adds them; the others add 0.
  bool CountsLoss() const { return IsLastStage() && coordinate.tensor == 0; }
};

// Connects the group of these ranks, of which the caller is one.
using Connector = std::function<std::unique_ptr<Communicator>(const std::string& name,
                                                              const std::vector<int64_t>& ranks)>;

// Every rank of the world makes the call. `amax`: kAmaxGroup or kTensorAmaxGroup. Throws what
// `connect` throws.
Groups MakeGroups(const ParallelSizes& sizes, int64_t rank, const Connector& connect,
                  const GroupDims& amax = kAmaxGroup);

// A rank alone.
Groups SingleRankGroups();

}  // namespace muster::parallel
