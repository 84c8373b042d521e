#pragma once

#include <string>
#include <vector>

#include "muster/v1/job.pb.h"
#include "muster/v1/worker.pb.h"

// What each node is asked about before a job starts there: read off the job and its plan. Pure.

namespace muster::preflight {

// Which files and folders the words of a command speak of; absolute paths.
struct CommandFiles {
  std::vector<std::string> required;  // a script, muster-train's data and tokenizer
  std::vector<std::string> optional;  // words that look like files: compared where they are there
  std::vector<std::string> written;   // folders for checkpoints
};
CommandFiles FilesOf(const v1::JobSpec& spec, const v1::Plan& plan);

// Whether the command is a Python interpreter with something to run.
bool IsPython(const std::string& program);

// Whether node `node` is of no use without a device: its hostfile line names some, or the command
// is muster-train for them.
bool NeedsDevices(const v1::Plan& plan, uint32_t node);

// The questions for node `node`, but for the network's. The head is also asked for a port.
v1::Probe MakeProbe(const v1::JobSpec& spec, const v1::Plan& plan, uint32_t node);

}  // namespace muster::preflight
