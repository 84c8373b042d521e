#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Plain text for people. Pure.

namespace muster::plan {

using Row = std::vector<std::string>;

// Columns two blanks apart, as wide as their widest cell; the first `left` columns are flush left,
// the others right. Every line ends in a newline and not in blanks.
std::string TextTable(const std::vector<Row>& rows, size_t left);

// "0-3, 8, 12-15"; steps of one only. Sorted input.
std::string NumberRanges(const std::vector<uint32_t>& numbers, std::string_view separator = ", ");

// Many ranks shortly: "0, 8, 16 ... 120 (16)"; few in full.
std::string RankList(const std::vector<uint32_t>& ranks);

// "134.6"
std::string GiB(double bytes);

}  // namespace muster::plan
