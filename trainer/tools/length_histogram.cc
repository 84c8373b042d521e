#include "trainer/tools/length_histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace muster::tools {
namespace {

constexpr int64_t kShort = int64_t{1} << 20;
constexpr int kTextBar = 50;

// 0, 1, 2-3, 4-7, ... have the numbers 0, 1, 2, 3, ...
size_t BinOf(int64_t length) {
  return static_cast<size_t>(std::bit_width(static_cast<uint64_t>(length)));
}

std::string Range(const LengthHistogram::Bin& bin) {
  return bin.low == bin.high ? fmt::format("{}", bin.low) : fmt::format("{}-{}", bin.low, bin.high);
}

std::string Escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else {
      out.push_back(c);
    }
  }
  return out;
}

int64_t HighestCount(const std::vector<LengthHistogram::Bin>& bins) {
  int64_t highest = 1;
  for (const auto& bin : bins) highest = std::max(highest, bin.count);
  return highest;
}

}  // namespace

LengthHistogram::LengthHistogram() : counts_(kShort) {}

void LengthHistogram::Add(int64_t length) {
  ++count_;
  total_ += length;
  if (length < kShort) {
    ++counts_[static_cast<size_t>(length)];
  } else {
    long_.push_back(length);
  }
}

double LengthHistogram::mean() const {
  return count_ == 0 ? 0 : static_cast<double>(total_) / static_cast<double>(count_);
}

int64_t LengthHistogram::Quantile(double q) const {
  if (count_ == 0) return 0;
  // Rank from 1: the smallest whose share of all is at least q.
  const auto rank = std::clamp<int64_t>(
      static_cast<int64_t>(std::ceil(q * static_cast<double>(count_))), 1, count_);
  int64_t seen = 0;
  for (int64_t length = 0; length < kShort; ++length) {
    seen += counts_[static_cast<size_t>(length)];
    if (seen >= rank) return length;
  }
  std::vector<int64_t> sorted = long_;
  const auto nth = sorted.begin() + (rank - seen - 1);
  std::nth_element(sorted.begin(), nth, sorted.end());
  return *nth;
}

std::vector<LengthHistogram::Bin> LengthHistogram::Bins() const {
  std::vector<Bin> bins;
  const auto add = [&bins](int64_t length, int64_t count) {
    const size_t number = BinOf(length);
    while (bins.size() <= number) {
      const size_t next = bins.size();
      const int64_t low = next == 0 ? 0 : int64_t{1} << (next - 1);
      bins.push_back({low, next == 0 ? 0 : 2 * low - 1, 0, 0});
    }
    bins[number].count += count;
    bins[number].total += count * length;
  };
  for (int64_t length = 0; length < kShort; ++length) {
    const int64_t count = counts_[static_cast<size_t>(length)];
    if (count > 0) add(length, count);
  }
  for (const int64_t length : long_) add(length, 1);
  const auto first =
      std::find_if(bins.begin(), bins.end(), [](const Bin& bin) { return bin.count > 0; });
  bins.erase(bins.begin(), first);
  return bins;
}

std::string HistogramText(const std::vector<LengthHistogram::Bin>& bins, const std::string& what) {
  std::string text = fmt::format("{:>23} {:>14} {:>17}\n", "tokens", what, "tokens in all");
  const int64_t highest = HighestCount(bins);
  for (const auto& bin : bins) {
    const int width = static_cast<int>(
        std::ceil(static_cast<double>(bin.count) * kTextBar / static_cast<double>(highest)));
    std::string line = fmt::format("{:>23} {:>14} {:>17} {}", Range(bin), bin.count, bin.total,
                                   std::string(static_cast<size_t>(width), '#'));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string HistogramSvg(const std::vector<LengthHistogram::Bin>& bins, const std::string& title,
                         const std::string& what) {
  constexpr int kLeft = 20;
  constexpr int kTop = 50;
  constexpr int kHeight = 260;
  constexpr int kBar = 44;
  constexpr int kGap = 8;
  const int width = std::max(420, 2 * kLeft + static_cast<int>(bins.size()) * (kBar + kGap));
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"sans-serif\" font-size=\"10\" text-anchor=\"middle\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"{2}\" y=\"20\" font-size=\"14\" text-anchor=\"start\">{3}</text>\n",
      width, kTop + kHeight + 50, kLeft, Escape(title));
  const int64_t highest = HighestCount(bins);
  for (size_t i = 0; i < bins.size(); ++i) {
    const auto& bin = bins[i];
    const double share = static_cast<double>(bin.count) / static_cast<double>(highest);
    const int x = kLeft + static_cast<int>(i) * (kBar + kGap);
    const double height = share * kHeight;
    const double y = kTop + kHeight - height;
    svg += fmt::format(
        "<rect x=\"{}\" y=\"{:.1f}\" width=\"{}\" height=\"{:.1f}\" fill=\"#4477aa\"><title>{} {} "
        "of {} tokens</title></rect>\n"
        "<text x=\"{}\" y=\"{:.1f}\">{}</text>\n"
        "<text x=\"{}\" y=\"{}\">{}{}</text>\n",
        x, y, kBar, height, bin.count, Escape(what), Range(bin), x + kBar / 2, y - 4, bin.count,
        x + kBar / 2, kTop + kHeight + 16, bin.low, bin.high > bin.low ? "+" : "");
  }
  svg += fmt::format(
      "<text x=\"{}\" y=\"{}\">tokens (each bar from its number to the next)</text>\n</svg>\n",
      width / 2, kTop + kHeight + 38);
  return svg;
}

}  // namespace muster::tools
