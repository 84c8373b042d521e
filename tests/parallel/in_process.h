#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainer/parallel/communicator.h"
#include "trainer/parallel/groups.h"

// Ranks that are threads of this process.

namespace muster::testing {

class InProcessWorld {
 public:
  InProcessWorld();
  ~InProcessWorld();

  // As GlooWorld::Connect, for `rank`. Sums are taken in the order of ranks, and all ranks get the
  // same bits every time; a reduce-scatter begins with the rank that gets the sum, as in a ring. A
  // message leaves when its receiver takes it, as over a network without buffers. Communicators
  // must not outlive the world.
  std::unique_ptr<parallel::Communicator> Connect(int64_t rank, const std::string& name,
                                                  const std::vector<int64_t>& ranks);
  // Every call that waits, and every later one, throws CommError.
  void Abort();

 private:
  struct Shared;
  class Rank;
  std::unique_ptr<Shared> shared_;
};

// Runs `body` as each rank, a thread each, with the groups of its place; the first failure is
// thrown again, and ends the others. `wrap`: what stands between a rank and each of its groups.
using Wrap = std::function<std::unique_ptr<parallel::Communicator>(
    int64_t rank, std::unique_ptr<parallel::Communicator> group)>;
void RunRanks(const parallel::ParallelSizes& sizes,
              const std::function<void(const parallel::Groups&)>& body, const Wrap& wrap = {});

}  // namespace muster::testing
