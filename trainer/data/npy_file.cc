#include "trainer/data/npy_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <random>

#include "common/unique_fd.h"
#include "trainer/data/data_error.h"
#include "trainer/data/file_ops.h"
#include "trainer/data/indexed_format.h"
#include "trainer/data/mapped_file.h"

namespace muster::data {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlign = 64;
// numpy leaves room for the first dimension to grow to this many digits.
constexpr size_t kGrowthDigits = 21;

int64_t BytesOf(std::string_view type, const std::vector<int64_t>& shape) {
  int64_t bytes = type.back() - '0';
  for (const int64_t extent : shape) bytes *= extent;
  return bytes;
}

std::string Dictionary(std::string_view type, const std::vector<int64_t>& shape) {
  std::string extents;
  for (const int64_t extent : shape)
    extents += (extents.empty() ? "" : ", ") + std::to_string(extent);
  if (shape.size() == 1) extents += ',';
  return fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, extents);
}

// Unlike all others, also of hosts that share the folder.
std::string TemporaryName(const std::string& path) {
  static std::atomic<unsigned> count = 0;
  return fmt::format("{}.{:08x}{:08x}.{}.tmp", path, std::random_device{}(), ::getpid(), ++count);
}

}  // namespace

std::string NpyHeader(std::string_view type, const std::vector<int64_t>& shape) {
  std::string text = Dictionary(type, shape);
  text.append(kGrowthDigits - std::to_string(shape.front()).size(), ' ');
  constexpr size_t kFixed = 10;  // magic, version, length
  text.append(kAlign - (kFixed + text.size() + 1) % kAlign, ' ');
  text += '\n';
  std::string header(kMagic);
  header += '\1';
  header += '\0';
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

NpyArray MapNpy(const std::string& path, std::string_view type, const std::vector<int64_t>& shape) {
  auto file = std::make_shared<MappedFile>(path);
  const auto size = static_cast<size_t>(file->size());
  const std::string_view text(reinterpret_cast<const char*>(file->data()), size);
  if (size < 12 || !text.starts_with(kMagic)) {
    throw DataError(path + ", offset 0: not a numpy file (no \\x93NUMPY magic)");
  }
  const auto version = static_cast<uint8_t>(text[6]);
  if (version < 1 || version > 3 || text[7] != 0) {
    throw DataError(fmt::format("{}, offset 6: version {}.{} of numpy's format is not known", path,
                                version, static_cast<uint8_t>(text[7])));
  }
  const size_t begin = version == 1 ? 10 : 12;
  const size_t length = version == 1 ? LoadUnaligned<uint16_t>(file->data() + 8)
                                     : LoadUnaligned<uint32_t>(file->data() + 8);
  std::string_view found = length <= size - begin ? text.substr(begin, length) : text.substr(begin);
  if (!found.empty() && found.back() == '\n') found.remove_suffix(1);
  found = found.substr(0, found.find_last_not_of(' ') + 1);
  const std::string expected = Dictionary(type, shape);
  if (found != expected) {
    throw DataError(fmt::format("{}, offset {}: the array is {:.120}, expected {}", path, begin,
                                found, expected));
  }
  const auto bytes = static_cast<size_t>(BytesOf(type, shape));
  if (size != begin + length + bytes) {
    throw DataError(fmt::format("{}, offset {}: the file has {} bytes, its array needs {}", path,
                                begin + length, size, begin + length + bytes));
  }
  NpyArray array;
  array.offset = static_cast<int64_t>(begin + length);
  array.data = file->data() + array.offset;
  array.owner = std::move(file);
  return array;
}

void WriteWhole(const std::string& path, std::string_view first, std::span<const uint8_t> then) {
  const std::string temporary = TemporaryName(path);
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!fd) throw DataError("create " + temporary + ": " + std::strerror(errno));
  try {
    WriteAll(fd.get(), first.data(), first.size(), temporary);
    WriteAll(fd.get(), then.data(), then.size(), temporary);
    if (::fsync(fd.get()) != 0) throw DataError("sync " + temporary + ": " + std::strerror(errno));
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
      throw DataError("rename " + temporary + " to " + path + ": " + std::strerror(errno));
    }
  } catch (const DataError&) {
    ::unlink(temporary.c_str());
    throw;
  }
}

void WriteNpy(const std::string& path, std::string_view type, const std::vector<int64_t>& shape,
              std::span<const uint8_t> bytes) {
  WriteWhole(path, NpyHeader(type, shape), bytes);
}

}  // namespace muster::data
