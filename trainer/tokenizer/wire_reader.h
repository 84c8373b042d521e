#pragma once

#include <cstdint>
#include <string_view>

namespace muster::tokenizer {

// Walks through the fields of a protobuf message. Throws TokenizerError with the offset in the file
// of what is cut off or malformed.
class WireReader {
 public:
  struct Field {
    int number;
    int wire_type;            // 0 varint, 1 eight bytes, 2 bytes, 5 four bytes
    uint64_t value = 0;       // of a number
    std::string_view bytes;   // of wire type 2
    size_t offset = 0;        // in the file, of the field
    size_t bytes_offset = 0;  // of its content
  };

  // `begin`: offset of `message` in the file.
  WireReader(std::string_view message, size_t begin) : message_(message), begin_(begin) {}

  bool AtEnd() const { return at_ == message_.size(); }
  Field Next();

 private:
  [[noreturn]] void Fail(const char* reason) const;
  uint64_t Varint();
  std::string_view Take(uint64_t size);

  std::string_view message_;
  size_t begin_;
  size_t at_ = 0;
};

}  // namespace muster::tokenizer
