#include "controller/why/rank_words.h"
#include "controller/why/rule_files.h"
#include "controller/why/why.h"

namespace muster::why {

Why ExplainJob(const v1::Job& job) {
  return Explain(job, ReadWords(job, CauseRanks(job)), LoadRules(job.spec(), RuleFolders()));
}

}  // namespace muster::why
