#include "trainer/tokenizer/byte_tokenizer.h"

#include <fmt/format.h>

#include "trainer/tokenizer/utf8.h"

namespace muster::tokenizer {
namespace {

class ByteEncoder : public Encoder {
 public:
  void Encode(std::string_view text, std::vector<int32_t>& ids) override {
    CheckUtf8(text);
    const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
    ids.insert(ids.end(), bytes, bytes + text.size());
  }
};

}  // namespace

ByteTokenizer::ByteTokenizer(int64_t vocab_size) : vocab_size_(vocab_size) {
  if (vocab_size < 256) {
    throw TokenizerError(fmt::format(
        "ByteLevelTokenizer: --vocab-size {} has no room for the 256 bytes", vocab_size));
  }
}

std::unique_ptr<Encoder> ByteTokenizer::NewEncoder(const EncoderOptions& /*options*/) const {
  return std::make_unique<ByteEncoder>();
}

std::string ByteTokenizer::Decode(std::span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) {
    if (id < 0 || id > 0xff) throw TokenizerError(fmt::format("{} is not a byte", id));
    text.push_back(static_cast<char>(id));
  }
  return text;
}

}  // namespace muster::tokenizer
