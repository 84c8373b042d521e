#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// The candidate nearest to `word` by edit distance (case ignored, a swap counts one), or nothing
// when none is near enough to be a plausible slip: at most a third of the longer word's length, and
// at least one.
std::optional<std::string> Nearest(std::string_view word,
                                   const std::vector<std::string>& candidates);

// "; did you mean 'x'?" for the nearest candidate, or "".
std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace muster
