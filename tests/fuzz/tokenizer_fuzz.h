#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>

#include "trainer/tokenizer/tokenizer.h"

// What the fuzz targets of tokenizer files share: any bytes are a tokenizer that encodes any text,
// or an error that starts with the file's name.

namespace muster::tokenizer::fuzz {

// Bytes as a file that has a name.
class MemoryFile {
 public:
  MemoryFile(const uint8_t* data, size_t size) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (fd_ < 0 || ::write(fd_, data, size) != static_cast<ssize_t>(size)) std::abort();
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

// Long enough to be cut by those who cut texts.
inline std::string LongText() {
  std::string text;
  while (text.size() < 5000) text += "ab cd1  x\n";
  return text;
}

inline void Exercise(const Tokenizer& tokenizer) {
  static const std::string kTexts[] = {"",
                                       " ",
                                       "In the beginning 123 456",
                                       "don't <s>we</s>  \n\n\t<|x|>",
                                       "\u4e2d\u6587\u2581a\u0301",
                                       std::string("a\0b", 3),
                                       std::string(300, 'a'),
                                       std::string(300, ' '),
                                       LongText()};
  const auto encoder = tokenizer.NewEncoder();
  std::vector<int32_t> ids;
  for (const std::string& text : kTexts) {
    try {
      ids.clear();
      encoder->Encode(text, ids);
      tokenizer.Decode(ids);
    } catch (const TokenizerError&) {  // a text that the vocabulary can't hold
    }
  }
  tokenizer.eod();
  tokenizer.pad();
  if (tokenizer.vocab_size() < 0) std::abort();
}

inline void Run(const uint8_t* data, size_t size,
                const std::function<std::unique_ptr<Tokenizer>(const std::string& path)>& load) {
  const MemoryFile file(data, size);
  std::unique_ptr<Tokenizer> tokenizer;
  try {
    tokenizer = load(file.path());
  } catch (const TokenizerError& error) {
    if (!std::string(error.what()).starts_with(file.path() + ": ")) std::abort();
    return;
  }
  Exercise(*tokenizer);
}

}  // namespace muster::tokenizer::fuzz
