#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/tools/byte_buffer.h"
#include "trainer/tools/byte_source.h"

namespace muster::tools {

// `--input-format`.
enum class InputFormat {
  kJsonl,  // each line is a JSON object
  kText,   // documents are separated by blank lines
  kLines,  // each line that is not empty is a document
  kFile,   // each file is a document
};

// A place between two lines of the inputs.
struct InputPosition {
  size_t file = 0;        // number of the input
  int64_t offset = 0;     // in its text (unpacked)
  int64_t line = 1;       // number of the next line in it
  int64_t index = 0;      // lines before, of all inputs
  uint32_t checksum = 0;  // CRC-32 of the text of stdin up to here

  bool operator==(const InputPosition&) const = default;
};

// A part of the input that can be worked on alone: whole lines, or whole documents, of one file.
struct Chunk {
  size_t file = 0;
  int64_t first_line = 1;   // number of its first line in the file
  int64_t first_index = 0;  // lines before it, of all inputs
  ByteBuffer bytes;
  std::string problem;  // the one line of this chunk was dropped, for this reason
  InputPosition end;    // where the inputs stand behind it
  int64_t taken = 0;    // bytes of the files (packed ones, if packed) up to its end
};

// A line of a chunk without its line break; \n, \r\n and \r break lines, as in Python's text files.
struct Line {
  int64_t number;
  std::string_view text;  // bytes of the chunk
};

// The lines of a chunk, one after the other. The chunk must outlive it and its lines.
class LineSplitter {
 public:
  explicit LineSplitter(const Chunk& chunk)
      : text_(chunk.bytes.view()), number_(chunk.first_line) {}
  // False at the end.
  bool Next(Line& line);

 private:
  std::string_view text_;
  int64_t number_;
  size_t at_ = 0;
  std::optional<size_t> newline_;  // a \n, the next one unless it lies behind us
};

struct ChunkOptions {
  InputFormat format = InputFormat::kJsonl;
  size_t target = 1 << 20;        // bytes of a chunk, more only when one line or document has more
  size_t max_document = 1 << 28;  // a line or document of more bytes is refused,
  bool drop_long = false;         // or dropped, with a note (lines and files only)
};

// Reads files, one after the other, in chunks. One thread. Throws data::DataError.
class ChunkReader {
 public:
  // `start` is an `end` of an earlier chunk of the same inputs.
  ChunkReader(std::vector<std::string> inputs, const ChunkOptions& options,
              const InputPosition& start = {});

  // False at the end of the input.
  bool Next(Chunk& chunk);

 private:
  void Open();
  // Behind the last whole part of rest_ that ends after `from`, or npos when more input is needed.
  size_t CutPoint(size_t from) const;
  // Reads until rest_ has `wanted` bytes or the file ends.
  void Fill(size_t wanted);
  void Cut(size_t size, Chunk& chunk);
  void DropLine(Chunk& chunk);
  void TakePosition(Chunk& chunk);

  std::vector<std::string> inputs_;
  ChunkOptions options_;
  std::unique_ptr<ByteSource> source_;
  ByteBuffer rest_;
  bool at_end_ = false;  // of the file
  InputPosition position_;
  int64_t taken_before_ = 0;  // bytes of the files before this one
};

}  // namespace muster::tools
