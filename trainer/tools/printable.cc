#include "trainer/tools/printable.h"

#include <fmt/format.h>

#include "trainer/tokenizer/utf8.h"

namespace muster::tools {

std::string Printable(std::string_view bytes) {
  std::string text;
  while (true) {
    const size_t valid = tokenizer::ValidUtf8Prefix(bytes);
    text += bytes.substr(0, valid);
    if (valid == bytes.size()) return text;
    text += fmt::format("\\x{:02x}", static_cast<uint8_t>(bytes[valid]));
    bytes.remove_prefix(valid + 1);
  }
}

}  // namespace muster::tools
