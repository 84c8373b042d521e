#include "controller/nodes/error_text.h"

#include <algorithm>

namespace muster::nodes {
namespace {

constexpr size_t kKept = 4096;
constexpr size_t kShown = 1000;

}  // namespace

void ErrorText::Append(std::string_view bytes) {
  text_.append(bytes);
  if (text_.size() > kKept) text_.erase(0, text_.size() - kKept);
}

std::string ErrorText::Tail() const {
  std::string text = text_.substr(text_.size() > kShown ? text_.size() - kShown : 0);
  text.erase(std::remove(text.begin(), text.end(), '\r'), text.end());
  // What a host says must not steer the terminal of whoever reads it.
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return c != '\n' && (static_cast<unsigned char>(c) < ' ' || c == 0x7f); }, ' ');
  const size_t begin = text.find_first_not_of("\n ");
  if (begin == std::string::npos) return "";
  text = text.substr(begin, text.find_last_not_of("\n ") + 1 - begin);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace muster::nodes
