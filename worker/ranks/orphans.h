#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "worker/facts/proc_reader.h"
#include "worker/ranks/leftover.h"

// Processes that bear the mark of any attempt, whoever runs it or ran it.

namespace muster::ranks {

// MUSTER_ATTEMPT=controller/job/attempt@tag. The tag names the daemon: its state folder.
struct Mark {
  std::string controller;
  std::string job;
  std::string attempt;
  std::string tag;

  std::string Name() const { return controller + "/" + job + "/" + attempt; }
};
std::optional<Mark> ParseMark(std::string_view value);

struct MarkedProcess {
  Leftover process;
  Mark mark;
  std::string attempt_folder;  // on this node, as its error file's path tells; "" = not known
};

// All of them but zombies and this process itself. Only processes whose environment may be read.
std::vector<MarkedProcess> FindMarked(const facts::ProcReader& proc);

// What is known of attempts when a sweep judges.
struct AttemptKnowledge {
  std::string tag;                     // of this daemon
  std::string controller;              // that asks
  std::vector<std::string> live_jobs;  // of that controller
  std::vector<std::string> running;    // attempts that this daemon runs, by name
  bool any_controller = false;         // also those it runs for others are to end
};

// Whether the process is a leftover of a dead attempt: one that its controller has ended, that this
// daemon does not run, or that nobody can run any more because its folder is gone.
// `folder_exists` tells the last. Pure.
bool IsDead(const MarkedProcess& process, const AttemptKnowledge& known, bool folder_exists);

}  // namespace muster::ranks
