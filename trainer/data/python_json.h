#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// JSON as Python's json.dumps(value, indent=4) writes it, to the byte: Megatron names its cache
// files by the MD5 of such a text. A value here is its text; lists and dictionaries indent what
// they hold.

namespace muster::data::python_json {

inline constexpr char kNull[] = "null";

std::string Integer(int64_t value);
// A finite float: the shortest digits that read back the same, as repr writes them.
std::string Float(double value);
// UTF-8; other bytes as os.fsdecode takes them. Pure ASCII comes out.
std::string Text(std::string_view text);
std::string List(const std::vector<std::string>& items);
// In this order.
std::string Dict(const std::vector<std::pair<std::string, std::string>>& entries);

}  // namespace muster::data::python_json
