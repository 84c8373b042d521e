#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/why/rules.h"
#include "muster/v1/control.pb.h"

// Why a job ended as it did, on one screen: `muster why`, the end of `muster submit` and why.txt
// are views of this one value. All texts are printable UTF-8; only those of a call stack or of log
// lines may be long, and they are cut.

namespace muster::why {

// A line that a rank wrote.
struct LogLine {
  bool err = false;
  std::string text;
};

// What ranks wrote last; from the controller's log files, or a test's.
struct RankWords {
  std::optional<LogLine> last;       // the later one of stdout's and stderr's
  std::optional<int64_t> iteration;  // the last one it told of
  std::string event_error;           // "nan: loss is not finite": our trainer's error event
  std::vector<LogLine> tail;         // oldest first; only of ranks that may be the cause
};
using Words = std::map<uint32_t, RankWords>;

// A rank that failed first, or may have.
struct CauseRank {
  uint32_t rank = 0;
  std::string host;
  uint32_t pid = 0;
  std::string end;    // "was killed by SIGKILL (9); Muster did not send it"
  std::string error;  // the first error text; may be empty
  std::string
      error_source;  // where it stands: "its error file", "its error event", "its last lines"
  std::vector<LogLine> lines;  // its call stack, or its last lines; oldest first
  bool call_stack = false;
  std::vector<std::string>
      ports;  // "127.0.0.2:29500 is in use by pid 812 (python), rank 1 of this job"
};

// Ranks that did the same.
struct RankGroup {
  std::vector<uint32_t> ranks;  // ascending
  std::string doing;            // "running, ended by us (SIGTERM)"
  std::string last_line;        // of the first of them; numbers differ within a group
  std::optional<std::pair<int64_t, int64_t>> iterations;  // lowest and highest
  std::optional<std::pair<double, double>> after_s;  // of failures: seconds after the first one
};

// What the kernel of one host said at that time.
struct KernelEvidence {
  std::string host;
  int64_t time_ns = 0;  // node's clock
  std::string kind;
  std::string text;
  std::optional<uint32_t> rank;  // whose process the line names
};

struct Hint {
  std::string cause;
  std::string advice;
  RuleAction action = RuleAction::kStop;
  std::string rule;   // its name
  std::string place;  // and file:line
  std::string found;  // the words that it knows
};

// The proof of one node.
struct NodeLine {
  std::string host;
  bool clean = false;
  std::string verdict;  // "clean", "LEFTOVERS", "UNVERIFIED"
  std::string details;
};

struct Why {
  std::string job;
  std::string name;
  uint32_t attempt = 0;
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  v1::Cause cause = v1::CAUSE_UNSPECIFIED;
  int32_t code = 0;
  std::string message;                 // of the outcome
  int64_t duration_ns = 0;             // from the start (or the submit) to the end; 0 = runs
  std::vector<CauseRank> causes;       // more than one: undecidable
  std::vector<RankGroup> followed;     // that failed too, later, by themselves
  std::vector<RankGroup> others;       // everybody else, largest group first
  std::vector<KernelEvidence> kernel;  // oldest first
  std::vector<std::string>
      kernel_notes;         // of the causes' hosts: that nothing was found, or why not
  std::vector<Hint> hints;  // the likeliest first
  std::vector<NodeLine> nodes;
  std::string output_dir;
  std::vector<uint32_t> unfinished;  // ended, but a part of their output is only on their nodes
  std::vector<std::string> remarks;  // rule files that don't count
};

// Pure.
Why Explain(const v1::Job& job, const Words& words, const RuleSet& rules);

// The ranks whose tails Explain wants.
std::vector<uint32_t> CauseRanks(const v1::Job& job);

// The same with the job's log files and all rules (rule_files.h). Reads files, at most a few
// hundred bytes of each rank; any thread.
Why ExplainJob(const v1::Job& job);

// logs::UnfinishedRanks of a job that has ended; none before.
std::vector<uint32_t> UnfinishedLogs(const v1::Job& job);

}  // namespace muster::why
