#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace muster::tools {

// `--progress`.
enum class ProgressStyle { kNone, kLines, kBar };

// How far a run is, on stderr: Megatron's lines at every `interval` documents, or a bar that is
// drawn anew a few times a second. One thread.
class Progress {
 public:
  // `size`: bytes of the input files, 0 when unknown; `taken`: of them when the run starts.
  Progress(ProgressStyle style, int64_t interval, int64_t size, int64_t taken);

  // More documents, characters of input lines and tokens; bytes of the files read by now.
  void Add(int64_t documents, int64_t characters, int64_t tokens, int64_t taken);
  // The last line, or the bar's end.
  void Finish();
  // Takes the bar away, for an error message.
  void Clear();

  int64_t documents() const { return documents_; }

 private:
  double Seconds() const;
  void PrintLine(int64_t documents) const;
  void Draw();

  const ProgressStyle style_;
  const int64_t interval_;
  const int64_t size_;
  const int64_t taken_at_start_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point drawn_;
  int64_t documents_ = 0;
  int64_t characters_ = 0;
  int64_t tokens_ = 0;
  int64_t taken_;
};

// What the bar says.
struct BarFacts {
  int64_t size = 0;            // bytes of the input files, 0 when unknown
  int64_t taken = 0;           // of them
  int64_t taken_at_start = 0;  // of them, before this run
  int64_t characters = 0;      // of text, in this run
  int64_t tokens = 0;
  double seconds = 0;
};

// "[####----]  42%  1.3 GB of 3.1 GB  85.2 MB/s  19.52 M tokens/s  0:21 left"; speeds are of text,
// also where the files are packed. Pure.
std::string FormatBar(const BarFacts& facts);

}  // namespace muster::tools
