#pragma once

#include <stdexcept>

namespace muster::data {

// Wrong or damaged input data: a missing file, a bad .idx, a token beyond the vocabulary, a text
// that is not JSON. The message names the file and the place in it. Programs exit with
// kDataExitCode.
class DataError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline constexpr int kDataExitCode = 65;

}  // namespace muster::data
