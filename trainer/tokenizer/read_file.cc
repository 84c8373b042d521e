#include "trainer/tokenizer/read_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "trainer/tokenizer/tokenizer.h"

namespace muster::tokenizer {

std::string ReadWholeFile(const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string bytes;
  if (in) bytes.assign(std::istreambuf_iterator<char>(in), {});
  // A folder opens, but can't be read.
  if (!in || (bytes.empty() && errno != 0)) {
    const bool missing = errno == ENOENT;
    throw TokenizerError("open " + path + ": " + std::strerror(errno) +
                         (missing ? " (names of a model hub are not downloaded: give the path of "
                                    "the file, or of the folder with it)"
                                  : ""));
  }
  return bytes;
}

}  // namespace muster::tokenizer
