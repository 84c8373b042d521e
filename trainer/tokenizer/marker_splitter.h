#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/tokenizer/splitter.h"

namespace muster::tokenizer {

// Whether a marker follows something else in `token`.
inline bool HasInnerMarker(std::string_view token, std::string_view marker) {
  while (token.starts_with(marker)) token.remove_prefix(marker.size());
  return token.find(marker) != std::string_view::npos;
}

// Cuts before each marker (the character that stands for a space), or before each run of markers.
class MarkerSplitter : public Splitter {
 public:
  MarkerSplitter(std::string marker, bool whole_runs)
      : marker_(std::move(marker)), whole_runs_(whole_runs) {}

  Piece Next(std::string_view text, size_t at) override {
    const auto is_marker = [&](size_t i) { return text.substr(i, marker_.size()) == marker_; };
    size_t end = at;
    if (is_marker(end)) end += marker_.size();
    while (whole_runs_ && is_marker(end)) end += marker_.size();
    return {std::min(text.find(marker_, end), text.size()), true};
  }

  std::unique_ptr<Splitter> Clone() const override {
    return std::make_unique<MarkerSplitter>(marker_, whole_runs_);
  }

 private:
  std::string marker_;
  bool whole_runs_;
};

}  // namespace muster::tokenizer
