#pragma once

#include <string_view>
#include <vector>

namespace muster::tools {

// Cuts texts into sentences. Immutable: any thread.
class SentenceSplitter {
 public:
  virtual ~SentenceSplitter() = default;

  // Appends the sentences of `text` (valid UTF-8); they are parts of it.
  virtual void Split(std::string_view text, std::vector<std::string_view>& sentences) const = 0;
};

}  // namespace muster::tools
