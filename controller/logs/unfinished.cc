#include "controller/logs/unfinished.h"

#include <algorithm>

#include "controller/logs/end_journal.h"
#include "controller/logs/layout.h"

namespace muster::logs {

std::vector<uint32_t> UnfinishedRanks(const std::string& output_dir, uint32_t attempt,
                                      const v1::Plan& plan) {
  std::vector<uint32_t> ranks;
  const auto journal = EndJournal::Look(AttemptDir(output_dir, attempt) + "/streams.journal");
  if (!journal.ok()) return ranks;
  std::vector<uint32_t> ends(static_cast<size_t>(plan.ranks_size()));  // a bit each stream
  for (const EndJournal::End& end : journal->ends) {
    if (end.rank < ends.size()) ends[end.rank] |= 1U << StreamIndex(end.stream);
  }
  for (const v1::RankPlan& rank : plan.ranks()) {
    const auto& gone = journal->abandoned;
    if (std::find(gone.begin(), gone.end(), rank.node()) != gone.end()) continue;
    if (rank.rank() >= ends.size() || ends[rank.rank()] == (1U << kNumStreams) - 1) continue;
    ranks.push_back(rank.rank());
  }
  return ranks;
}

}  // namespace muster::logs
