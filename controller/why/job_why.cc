#include "controller/engine/transitions.h"
#include "controller/logs/unfinished.h"
#include "controller/why/rank_words.h"
#include "controller/why/rule_files.h"
#include "controller/why/why.h"

namespace muster::why {

Why ExplainJob(const v1::Job& job) {
  Why why = Explain(job, ReadWords(job, CauseRanks(job)), LoadRules(job.spec(), RuleFolders()));
  why.unfinished = UnfinishedLogs(job);
  return why;
}

std::vector<uint32_t> UnfinishedLogs(const v1::Job& job) {
  if (!engine::IsTerminal(job.state())) return {};
  return logs::UnfinishedRanks(job.output_dir(), job.attempt(), job.plan());
}

}  // namespace muster::why
