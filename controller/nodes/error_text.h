#pragma once

#include <string>
#include <string_view>

namespace muster::nodes {

// The last part of what a command says on stderr. Bounded. One thread.
class ErrorText {
 public:
  void Append(std::string_view bytes);
  // The last lines on one line, "" if none.
  std::string Tail() const;

 private:
  std::string text_;
};

}  // namespace muster::nodes
