#pragma once

#include <string>

#include "muster/v1/worker.pb.h"
#include "worker/facts/run_tool.h"

// Questions about paths. Each blocks as long as the file system does; any thread.

namespace muster::facts {

// Why ranks can't work in the folder; "" if they can.
std::string WorkingDirError(const std::string& path);

struct ResolvedProgram {
  std::string path;   // absolute, or ...
  std::string error;  // why not: "program python4 in PATH=/bin: No such file or directory"
};
// As the exec of a rank with this environment will; relative names are relative to the working
// folder.
ResolvedProgram ResolveProgram(const std::string& program, const std::string& working_dir,
                               const Environment& environment);

// Whether the path can be read; of a plain file its size and sum. `whole_limit`: see FileSum.
v1::FileFact LookAtFile(const std::string& path, uint64_t whole_limit);

// The same of what has to be a file, or a folder with a __main__.py or a tokenizer.json, which then
// counts: a pipe or another folder is an error.
v1::FileFact LookAtRequired(const std::string& path, uint64_t whole_limit);

// Whether the folder, or the nearest parent that exists, can be written to, and its space.
v1::FolderFact LookAtFolder(const std::string& path);

}  // namespace muster::facts
