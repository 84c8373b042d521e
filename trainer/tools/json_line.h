#pragma once

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace muster::tools {

// Why a line is refused; `column` counts bytes from 1.
class LineError : public std::runtime_error {
 public:
  LineError(size_t at, const std::string& reason) : std::runtime_error(reason), column(at) {}
  size_t column;
};

// The texts under one key of a line. A list of texts is one document of several sequences.
struct Texts {
  std::vector<std::string_view> texts;  // in the line's bytes
  bool is_list = false;
};

// Reads the texts under `keys` from one line of JSON (without its line break), which is
// overwritten. The rules are those of Python's json module, which Megatron reads with: NaN and
// Infinity are numbers, the last of equal keys counts, control characters in strings and a byte
// order mark are refused, a lone surrogate is refused only where it is used. Throws LineError.
std::vector<Texts> ReadJsonLine(std::span<char> line, const std::vector<std::string>& keys);

// Why a line holds no object at all (it is blank, or begins with something else), as ReadJsonLine
// says it, but without the cost of an exception: such lines may come by the million.
std::optional<LineError> FindNoObject(std::string_view line);

// One string of JSON alone, such as "a\n". Throws LineError.
std::string ReadJsonString(std::string_view line);

}  // namespace muster::tools
