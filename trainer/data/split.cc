#include "trainer/data/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "trainer/data/data_error.h"

namespace muster::data {
namespace {

// Every run of digits and dots, whatever stands between (people pass quotes along).
std::vector<double> Numbers(const std::string& text) {
  constexpr char kNumberChars[] = ".0123456789";
  std::vector<double> numbers;
  size_t begin = 0;
  while ((begin = text.find_first_of(kNumberChars, begin)) != std::string::npos) {
    const size_t end = std::min(text.find_first_not_of(kNumberChars, begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    char* parsed = nullptr;
    numbers.push_back(std::strtod(word.c_str(), &parsed));
    if (*parsed != '\0') {
      throw DataError(fmt::format("--split '{}': '{}' is not a number", text, word));
    }
    begin = end;
  }
  return numbers;
}

}  // namespace

const char* NameOf(Split split) {
  switch (split) {
    case Split::kTrain:
      return "train";
    case Split::kValid:
      return "valid";
    case Split::kTest:
      return "test";
  }
  return "";
}

SplitShares ParseSplit(const std::string& split) {
  std::vector<double> weights = Numbers(split);
  if (weights.empty() || weights.size() > 3) {
    throw DataError("--split '" + split +
                    "' needs one to three numbers: train, valid, test (such as 99,1,0)");
  }
  weights.resize(3);
  const double sum = weights[0] + weights[1] + weights[2];
  if (!(sum > 0)) throw DataError("--split '" + split + "' gives nothing to any split");
  SplitShares shares;
  double begin = 0;
  for (size_t i = 0; i < 3; ++i) {
    const double end = begin + weights[i] / sum;
    if (end > begin) shares[i] = {begin, end};
    begin = end;
  }
  return shares;
}

std::array<std::optional<Range>, 3> SplitRanges(const std::string& split, int64_t count) {
  // nearbyint rounds halves to even, as Python's round does.
  const auto place = [count](double share) {
    return static_cast<int64_t>(std::nearbyint(share * static_cast<double>(count)));
  };
  std::array<std::optional<Range>, 3> ranges;
  const SplitShares shares = ParseSplit(split);
  for (size_t i = 0; i < 3; ++i) {
    if (shares[i]) ranges[i] = Range{place(shares[i]->first), place(shares[i]->second)};
  }
  return ranges;
}

}  // namespace muster::data
