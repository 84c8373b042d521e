#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster::tools {

// How often which length occurs. Exact for any number of lengths, in some megabytes (and 8 bytes
// for each length of more than a million).
class LengthHistogram {
 public:
  LengthHistogram();

  void Add(int64_t length);

  int64_t count() const { return count_; }
  int64_t total() const { return total_; }
  double mean() const;
  // The length that a part `q` of all lengths does not exceed; 0 when there are none.
  int64_t Quantile(double q) const;

  // Lengths by powers of two: 0, 1, 2-3, 4-7, ...; from the first to the last that occurs.
  struct Bin {
    int64_t low;
    int64_t high;
    int64_t count;
    int64_t total;  // sum of the lengths
  };
  std::vector<Bin> Bins() const;

 private:
  std::vector<int64_t> counts_;  // of each short length
  std::vector<int64_t> long_;    // the others
  int64_t count_ = 0;
  int64_t total_ = 0;
};

// The bins as lines of text with bars.
std::string HistogramText(const std::vector<LengthHistogram::Bin>& bins, const std::string& what);

// The bins as an SVG picture.
std::string HistogramSvg(const std::vector<LengthHistogram::Bin>& bins, const std::string& title,
                         const std::string& what);

}  // namespace muster::tools
