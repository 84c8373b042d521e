#include "trainer/tokenizer/wire_reader.h"

#include <fmt/format.h>

#include <cstring>

#include "trainer/tokenizer/tokenizer.h"

namespace muster::tokenizer {

void WireReader::Fail(const char* reason) const {
  throw TokenizerError(fmt::format("offset {}: {}", begin_ + at_, reason));
}

uint64_t WireReader::Varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (AtEnd()) Fail("the file is cut off");
    const auto byte = static_cast<uint8_t>(message_[at_++]);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  Fail("a number of more than 64 bits");
}

std::string_view WireReader::Take(uint64_t size) {
  if (size > message_.size() - at_) Fail("the file is cut off");
  const std::string_view taken = message_.substr(at_, size);
  at_ += size;
  return taken;
}

WireReader::Field WireReader::Next() {
  Field field{};
  field.offset = begin_ + at_;
  const uint64_t tag = Varint();
  field.wire_type = static_cast<int>(tag & 7);
  if (tag >> 3 == 0 || tag >> 3 > INT32_MAX) Fail("not a field of a SentencePiece model");
  field.number = static_cast<int>(tag >> 3);
  switch (field.wire_type) {
    case 0:
      field.value = Varint();
      break;
    case 1:
      std::memcpy(&field.value, Take(8).data(), 8);
      break;
    case 2: {
      const uint64_t size = Varint();
      field.bytes_offset = begin_ + at_;
      field.bytes = Take(size);
      break;
    }
    case 5:
      std::memcpy(&field.value, Take(4).data(), 4);
      break;
    default:
      Fail("not a field of a SentencePiece model");
  }
  return field;
}

}  // namespace muster::tokenizer
