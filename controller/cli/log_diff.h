#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "controller/cli/log_lines.h"
#include "controller/cli/render.h"

namespace muster::cli {

// Puts ranks that print the same into groups. Two ranks print the same when they print the same
// kinds of lines equally often on each stream, in whatever order. A kind is a line without its
// numbers (each run of digits, with sign, point and exponent, and 0x...), without the name of its
// host, and, where CRs have overwritten it, in its last state: so losses, times, ranks and
// addresses may differ.
//
// Memory is bounded: kMaxKinds kinds and kMaxCounts counts over all ranks; what comes beyond is not
// compared, and that is said. Not thread-safe.
class LogDiff {
 public:
  static constexpr size_t kMaxKinds = 50'000;
  static constexpr size_t kMaxCounts = 4'000'000;

  // Of one group against the first, which is the largest.
  struct Odd {
    v1::Stream stream = v1::STREAM_UNSPECIFIED;
    int64_t more = 0;  // times that its first rank prints it more often; below 0: less often
    std::string example;
  };
  struct Group {
    std::vector<uint32_t> ranks;  // ascending
    std::string host;             // of the first
    uint64_t lines = 0;           // of the first
    std::vector<Odd> odd;         // in order of appearance; empty for the first group
  };

  void Add(const LogLine& line);
  // The largest group first, then the smallest ones: the odd ones.
  std::vector<Group> Groups() const;
  uint64_t not_compared() const { return not_compared_; }

  std::string Text(const Style& style) const;
  std::string Json() const;

 private:
  struct Kind {
    v1::Stream stream = v1::STREAM_UNSPECIFIED;
    std::string example;
  };
  struct RankLines {
    std::string host;
    uint64_t lines = 0;
    std::map<uint32_t, uint64_t> counts;  // by kind
  };

  std::unordered_map<std::string, uint32_t> numbers_;  // masked line -> index in kinds_
  std::vector<Kind> kinds_;
  std::map<uint32_t, RankLines> ranks_;
  size_t num_counts_ = 0;
  uint64_t not_compared_ = 0;
};

// The kind of a line, as described above.
std::string MaskLine(std::string_view line, std::string_view host);

}  // namespace muster::cli
