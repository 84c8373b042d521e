#include "trainer/checkpoint/checkpoint_store.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <map>
#include <system_error>

#include "trainer/checkpoint/crc32c.h"
#include "trainer/checkpoint/durable_file.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/config/error.h"

namespace muster::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr char kTracker[] = "latest_checkpointed_iteration.txt";
constexpr char kIndex[] = "index.json";
constexpr char kShard[] = "shard_00000.safetensors";

std::optional<int64_t> ToNumber(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<int64_t> ReadTracker(const fs::path& root) {
  std::ifstream in(root / kTracker);
  std::string text;
  in >> text;
  return ToNumber(text);
}

// Iterations that have a folder, newest first.
std::vector<int64_t> Iterations(const fs::path& root) {
  std::vector<int64_t> iterations;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root, error)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("iter_")) continue;
    const auto iteration = ToNumber(std::string_view(name).substr(5));
    if (iteration && name == IterationFolder(*iteration)) iterations.push_back(*iteration);
  }
  if (error && error != std::errc::no_such_file_or_directory)
    throw CheckpointError("read folder " + root.string() + ": " + error.message());
  std::sort(iterations.rbegin(), iterations.rend());
  return iterations;
}

void VerifyShard(const fs::path& folder, const ShardEntry& shard) {
  std::ifstream in(folder / shard.file, std::ios::binary);
  if (!in) throw CheckpointError(shard.file + ": missing or not readable");
  std::array<char, 1 << 16> buffer;
  uint64_t bytes = 0;
  uint32_t crc = 0;
  do {
    in.read(buffer.data(), buffer.size());
    crc = Crc32c(crc, buffer.data(), static_cast<size_t>(in.gcount()));
    bytes += static_cast<uint64_t>(in.gcount());
  } while (in);
  if (bytes != shard.bytes) {
    throw CheckpointError(shard.file + ": " + std::to_string(bytes) + " bytes instead of " +
                          std::to_string(shard.bytes));
  }
  if (crc != shard.crc32c) throw CheckpointError(shard.file + ": checksum differs");
}

FoundCheckpoint OpenWhole(const fs::path& folder) {
  FoundCheckpoint checkpoint{folder, IndexFromJson(ReadText(folder / kIndex))};
  for (const ShardEntry& shard : checkpoint.index.shards) VerifyShard(folder, shard);
  return checkpoint;
}

std::string ShapeText(at::IntArrayRef shape) {
  std::string text = "[";
  for (const int64_t n : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(n);
  return text + "]";
}

void FillTensors(CheckpointIndex& index, const std::vector<NamedTensor>& tensors) {
  for (const auto& [name, tensor] : tensors) {
    const std::vector<int64_t> shape = tensor.sizes().vec();
    TensorPart whole{0, std::vector<int64_t>(shape.size(), 0), shape};
    index.tensors[name] = {DTypeName(tensor.scalar_type()), shape, {std::move(whole)}};
  }
}

// Where `part` lies in `whole`.
at::Tensor Region(at::Tensor whole, const TensorPart& part) {
  for (size_t d = 0; d < part.shape.size(); ++d) {
    whole = whole.narrow(static_cast<int64_t>(d), part.offset[d], part.shape[d]);
  }
  return whole;
}

void WriteFolder(const fs::path& folder, CheckpointIndex index,
                 const std::vector<NamedTensor>& tensors) {
  MakeFolder(folder);
  const FileSummary shard = WriteSafetensors(folder / kShard, tensors);
  index.shards = {{kShard, shard.bytes, shard.crc32c}};
  index.tensors.clear();
  FillTensors(index, tensors);
  ReplaceFile(folder / kIndex, ToJson(index));
}

}  // namespace

std::string IterationFolder(int64_t iteration) {
  char name[32];
  std::snprintf(name, sizeof name, "iter_%07lld", static_cast<long long>(iteration));
  return name;
}

void SaveCheckpoint(const fs::path& root, CheckpointIndex index,
                    const std::vector<NamedTensor>& tensors) {
  const int64_t iteration = index.progress.iteration;
  const std::string name = IterationFolder(iteration);
  const fs::path temporary = root / ("." + name + ".tmp");
  std::error_code ignored;
  fs::remove_all(temporary, ignored);  // of a save that was killed
  try {
    WriteFolder(temporary, std::move(index), tensors);
  } catch (...) {
    fs::remove_all(temporary, ignored);  // a full disk is not kept full
    throw;
  }

  // A folder can't be renamed over another: an older checkpoint of this iteration steps aside
  // first.
  const fs::path replaced = root / ("." + name + ".old");
  fs::remove_all(replaced, ignored);
  if (fs::exists(root / name, ignored)) DurableRename(root / name, replaced);
  DurableRename(temporary, root / name);
  ReplaceFile(root / kTracker, std::to_string(iteration) + "\n");
  fs::remove_all(replaced, ignored);
}

Search FindNewestWhole(const fs::path& root) {
  Search search;
  const std::optional<int64_t> published = ReadTracker(root);
  for (const int64_t iteration : Iterations(root)) {
    const std::string name = IterationFolder(iteration);
    if (published && iteration > *published) {
      search.skipped.push_back(name + ": newer than " + kTracker + " says");
      continue;
    }
    try {
      search.found = OpenWhole(root / name);
      break;
    } catch (const CheckpointError& error) {
      search.skipped.push_back(name + ": " + error.what());
    }
  }
  return search;
}

void LoadTensors(const FoundCheckpoint& checkpoint, const std::vector<NamedTensor>& tensors) {
  std::map<int64_t, SafetensorsReader> readers;
  const auto reader = [&](int64_t shard) -> const SafetensorsReader& {
    const auto it = readers.find(shard);
    if (it != readers.end()) return it->second;
    const auto& file = checkpoint.index.shards[static_cast<size_t>(shard)].file;
    return readers.emplace(shard, SafetensorsReader(checkpoint.folder / file)).first->second;
  };
  for (const auto& [name, tensor] : tensors) {
    const auto fail = [&checkpoint, &name = name](const std::string& reason) {
      throw CheckpointError(checkpoint.folder.string() + ": tensor " + name + ": " + reason);
    };
    const auto it = checkpoint.index.tensors.find(name);
    if (it == checkpoint.index.tensors.end()) fail("not in this checkpoint");
    const TensorEntry& entry = it->second;
    if (entry.shape != tensor.sizes().vec()) {
      fail("has shape " + ShapeText(entry.shape) + ", this model's is " +
           ShapeText(tensor.sizes()));
    }
    if (entry.dtype != DTypeName(tensor.scalar_type())) {
      fail("is " + entry.dtype + ", this model's is " + DTypeName(tensor.scalar_type()));
    }
    for (const TensorPart& part : entry.parts) {
      const at::Tensor piece = reader(part.shard).View(name);
      if (piece.sizes().vec() != part.shape || piece.scalar_type() != tensor.scalar_type()) {
        fail("its shard holds " + DTypeName(piece.scalar_type()) + " " + ShapeText(piece.sizes()) +
             " instead of " + entry.dtype + " " + ShapeText(part.shape));
      }
      Region(tensor, part).copy_(piece);
    }
  }
}

}  // namespace muster::checkpoint
