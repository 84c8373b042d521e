#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/unique_fd.h"

namespace muster::tools {

// `--input-format`.
enum class InputFormat {
  kJsonl,  // each line is a JSON object
  kText,   // documents are separated by blank lines
  kLines,  // each line that is not empty is a document
};

// A part of the input that can be worked on alone: whole lines, or whole documents.
struct Chunk {
  int64_t first_line = 1;  // number of its first line in the file
  std::string bytes;
};

// A line of a chunk without its line break; \n, \r\n and \r break lines, as in Python's text files.
struct Line {
  int64_t number;
  std::string_view text;
};
std::vector<Line> SplitLines(const Chunk& chunk);

// Reads a file, or stdin for "-", in chunks of about `target` bytes (larger only when one line or
// document is). One thread. Throws data::DataError.
class ChunkReader {
 public:
  ChunkReader(const std::string& path, InputFormat format, size_t target);

  // False at the end of the input.
  bool Next(Chunk& chunk);

 private:
  // Where the first whole part of rest_ ends, or npos when more input is needed.
  size_t CutPoint() const;
  void Fill(size_t wanted);

  std::string path_;
  InputFormat format_;
  size_t target_;
  UniqueFd fd_;
  std::string rest_;
  bool at_end_ = false;
  int64_t next_line_ = 1;
};

}  // namespace muster::tools
