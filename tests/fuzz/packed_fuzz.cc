// Fuzzes the unpacking of gzip and zstd: any bytes end in a text or in an error with path and
// offset, and what is read does not depend on how much is asked for at once.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/unique_fd.h"
#include "trainer/data/data_error.h"
#include "trainer/tools/byte_source.h"

namespace muster::tools {
namespace {

constexpr size_t kMaxText = 1 << 22;

// The text, and the error that ended it.
std::string ReadAll(const std::string& path, size_t step) {
  std::string text;
  try {
    const auto source = OpenByteSource(path);
    std::vector<char> buffer(step);
    for (size_t n = 1; n > 0 && text.size() < kMaxText;) {
      n = source->Read(buffer.data(), buffer.size());
      text.append(buffer.data(), n);
    }
  } catch (const data::DataError& error) {
    const std::string message = error.what();
    if (message.find(path) == std::string::npos) std::abort();
    text += "\nerror";
  }
  return text;
}

void Fuzz(const uint8_t* bytes, size_t size) {
  const UniqueFd file(::memfd_create("packed_fuzz", MFD_CLOEXEC));
  if (::write(file.get(), bytes, size) != static_cast<ssize_t>(size)) std::abort();
  const std::string path = fmt::format("/proc/self/fd/{}", file.get());
  const std::string whole = ReadAll(path, 1 << 16);
  const std::string small = ReadAll(path, 7);
  // Where a damaged stream breaks off may depend on the step; a good one is the same.
  const bool failed = whole.ends_with("\nerror") || small.ends_with("\nerror");
  if (!failed && whole.size() < kMaxText && whole != small) std::abort();
}

}  // namespace
}  // namespace muster::tools

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  muster::tools::Fuzz(data, size);
  return 0;
}
