#include "trainer/checkpoint/safetensors.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "common/suggest.h"
#include "common/unique_fd.h"
#include "trainer/checkpoint/safetensors_header.h"

namespace muster::checkpoint {
namespace {

constexpr std::pair<const char*, at::ScalarType> kDTypes[] = {
    {"F64", at::kDouble},
    {"F32", at::kFloat},
    {"F16", at::kHalf},
    {"BF16", at::kBFloat16},
    {"I64", at::kLong},
    {"I32", at::kInt},
    {"I16", at::kShort},
    {"I8", at::kChar},
    {"U64", at::kUInt64},
    {"U32", at::kUInt32},
    {"U16", at::kUInt16},
    {"U8", at::kByte},
    {"BOOL", at::kBool},
    {"F8_E4M3", at::kFloat8_e4m3fn},
    {"F8_E5M2", at::kFloat8_e5m2},
};

std::string Describe(const std::filesystem::path& path, int64_t offset, const std::string& reason) {
  std::string text = path.string();
  if (offset >= 0) text += ": offset " + std::to_string(offset);
  return text + ": " + reason;
}

}  // namespace

SafetensorsError::SafetensorsError(const std::filesystem::path& path, int64_t offset,
                                   const std::string& reason)
    : std::runtime_error(Describe(path, offset, reason)), offset_(offset) {}

std::string DTypeName(at::ScalarType dtype) {
  for (const auto& [name, type] : kDTypes) {
    if (type == dtype) return name;
  }
  throw std::invalid_argument(std::string("safetensors has no dtype for ") + c10::toString(dtype));
}

at::ScalarType DTypeFromName(const std::string& name) {
  for (const auto& [known, type] : kDTypes) {
    if (name == known) return type;
  }
  throw std::invalid_argument("unknown dtype '" + name + "'");
}

struct SafetensorsReader::File {
  explicit File(const std::filesystem::path& file_path) : path(file_path) {}
  ~File() {
    if (data != nullptr) munmap(data, size);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void Map();
  void Parse();
  void AddTensor(const std::string& name, const HeaderEntry& entry, uint64_t data_start);
  void CheckLayout(uint64_t data_start) const;
  const TensorInfo& Find(const std::string& name) const;
  [[noreturn]] void Fail(uint64_t offset, const std::string& reason) const {
    throw SafetensorsError(path, static_cast<int64_t>(offset), reason);
  }

  std::filesystem::path path;
  char* data = nullptr;
  uint64_t size = 0;
  std::map<std::string, TensorInfo> tensors;
  std::map<std::string, std::string> metadata;
};

void SafetensorsReader::File::Map() {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (fd.get() < 0 || fstat(fd.get(), &status) != 0) {
    throw SafetensorsError(path, -1, std::string("can't open: ") + std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) throw SafetensorsError(path, -1, "not a regular file");
  size = static_cast<uint64_t>(status.st_size);
  if (size < 8) Fail(0, "file of " + std::to_string(size) + " bytes has no header length");
  void* const mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd.get(), 0);
  if (mapped == MAP_FAILED) {
    throw SafetensorsError(path, -1, std::string("can't map: ") + std::strerror(errno));
  }
  data = static_cast<char*>(mapped);
}

void SafetensorsReader::File::Parse() {
  uint64_t header_size = 0;
  for (int i = 7; i >= 0; --i) header_size = header_size << 8 | static_cast<uint8_t>(data[i]);
  if (header_size > kMaxHeaderBytes || header_size > size - 8) {
    Fail(0, "header length " + std::to_string(header_size) + " exceeds the file or 100 MB");
  }
  Header header;
  try {
    header = ParseHeader(std::string_view(data + 8, header_size));
  } catch (const std::invalid_argument& e) {
    Fail(8, e.what());
  }
  for (const auto& [name, entry] : header.tensors) AddTensor(name, entry, 8 + header_size);
  CheckLayout(8 + header_size);
  metadata = std::move(header.metadata);
}

void SafetensorsReader::File::AddTensor(const std::string& name, const HeaderEntry& entry,
                                        uint64_t data_start) {
  TensorInfo info{at::kByte, entry.shape, 0, 0};
  try {
    info.dtype = DTypeFromName(entry.dtype);
  } catch (const std::invalid_argument& e) {
    Fail(8, "tensor '" + name + "': " + e.what());
  }
  if (entry.end > size - data_start) {
    Fail(8, "tensor '" + name + "': data_offsets end at " + std::to_string(entry.end) +
                " of only " + std::to_string(size - data_start) + " bytes of data");
  }
  // Sizes are at most 2^53, so the product of two can pass 2^64: check before each step.
  unsigned __int128 bytes = c10::elementSize(info.dtype);
  const bool empty = std::count(info.shape.begin(), info.shape.end(), 0) > 0;
  for (const int64_t n : info.shape) {
    bytes *= static_cast<uint64_t>(empty ? 0 : n);
    if (bytes > size) break;
  }
  if (bytes != entry.end - entry.begin) {
    Fail(data_start + entry.begin, "tensor '" + name + "': " + entry.dtype +
                                       " and its shape do not fit the " +
                                       std::to_string(entry.end - entry.begin) + " bytes it has");
  }
  info.begin = data_start + entry.begin;
  info.end = data_start + entry.end;
  tensors.emplace(name, std::move(info));
}

void SafetensorsReader::File::CheckLayout(uint64_t data_start) const {
  std::vector<std::pair<std::pair<uint64_t, uint64_t>, const std::string*>> ranges;
  for (const auto& [name, info] : tensors) ranges.push_back({{info.begin, info.end}, &name});
  std::sort(ranges.begin(), ranges.end());
  uint64_t position = data_start;
  for (const auto& [range, name] : ranges) {
    if (range.first != position) {
      Fail(range.first,
           "tensor '" + *name + "' " +
               (range.first < position ? "overlaps another" : "leaves a hole before it"));
    }
    position = range.second;
  }
  if (position != size) Fail(position, "bytes after the last tensor");
}

const TensorInfo& SafetensorsReader::File::Find(const std::string& name) const {
  const auto found = tensors.find(name);
  if (found != tensors.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, info] : tensors) names.push_back(known);
  throw SafetensorsError(path, -1, "no tensor '" + name + "'" + DidYouMean(name, names));
}

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path) {
  const auto file = std::make_shared<File>(path);
  file->Map();
  file->Parse();
  file_ = file;
}

SafetensorsReader::~SafetensorsReader() = default;
SafetensorsReader::SafetensorsReader(SafetensorsReader&&) noexcept = default;
SafetensorsReader& SafetensorsReader::operator=(SafetensorsReader&&) noexcept = default;

const std::map<std::string, TensorInfo>& SafetensorsReader::tensors() const {
  return file_->tensors;
}

const std::map<std::string, std::string>& SafetensorsReader::metadata() const {
  return file_->metadata;
}

bool SafetensorsReader::Contains(const std::string& name) const {
  return file_->tensors.count(name) > 0;
}

at::Tensor SafetensorsReader::Load(const std::string& name) const {
  const TensorInfo& info = file_->Find(name);
  at::Tensor tensor = at::empty(info.shape, at::TensorOptions().dtype(info.dtype));
  if (info.end > info.begin) {
    std::memcpy(tensor.data_ptr(), file_->data + info.begin, info.end - info.begin);
  }
  return tensor;
}

at::Tensor SafetensorsReader::View(const std::string& name) const {
  const TensorInfo& info = file_->Find(name);
  if (info.begin % c10::elementSize(info.dtype) != 0) return Load(name);
  return at::from_blob(
      file_->data + info.begin, info.shape, [file = file_](void*) {},
      at::TensorOptions().dtype(info.dtype));
}

}  // namespace muster::checkpoint
