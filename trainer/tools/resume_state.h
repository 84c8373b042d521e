#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/indexed_writer.h"
#include "trainer/tools/text_chunks.h"

namespace muster::tools {

// What decides the output: flags by name, and the files that they name. Two runs with the same
// value write the same files. All of it is UTF-8 (see Printable).
struct RunIdentity {
  std::map<std::string, std::vector<std::string>> flags;
  std::map<std::string, std::string> files;  // path: size and date

  // Why a run of `other` can't go on with what a run of this began; empty: it can.
  std::string DifferenceFrom(const RunIdentity& other) const;
};

// How far a run came. Kept beside the output, in PREFIX.resume.json.
struct ResumeState {
  RunIdentity identity;
  InputPosition position;
  std::vector<data::WriterState> writers;
  int64_t skipped_bytes = 0;  // of PREFIX.skipped.jsonl
  int64_t skipped = 0;
  int64_t documents = 0;
  int64_t tokens = 0;
  bool complete = false;  // all is written: only names are missing
};

std::string ResumePath(const std::string& prefix);

// Nothing when there is no such file. Throws data::DataError when it can't be used.
std::optional<ResumeState> ReadResumeState(const std::string& prefix);

// Replaces the file, durably. Throws data::DataError.
void WriteResumeState(const std::string& prefix, const ResumeState& state);

void RemoveResumeState(const std::string& prefix);

// Size and date of each file; of a folder, of the files in it.
std::map<std::string, std::string> DescribeFiles(const std::vector<std::string>& paths);

}  // namespace muster::tools
