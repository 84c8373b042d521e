#include "trainer/data/index_cache.h"

#include <unistd.h>

#include <array>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "trainer/data/cache_lock.h"
#include "trainer/data/data_error.h"
#include "trainer/data/md5.h"
#include "trainer/data/npy_file.h"

namespace muster::data {
namespace {

// What one array is in the cache.
struct ArraySpec {
  std::string_view suffix;
  std::string_view type;
  std::vector<int64_t> shape;
};

constexpr std::string_view kDescription = "description.txt";

std::vector<ArraySpec> SpecsOf(const GptIndexShape& shape) {
  return {{"document_index.npy", "<i4", {shape.num_documents}},
          {"sample_index.npy", shape.wide_samples() ? "<i8" : "<i4", {shape.num_samples + 1, 2}},
          {"shuffle_index.npy", shape.wide_shuffle() ? "<i8" : "<u4", {shape.num_samples}}};
}

std::vector<ArraySpec> SpecsOfBlend(int64_t size) {
  return {{"dataset_index.npy", "<i2", {size}}, {"dataset_sample_index.npy", "<i8", {size}}};
}

bool Exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

// The files of a cache, whatever index they hold.
class CacheFiles {
 public:
  CacheFiles(const CacheKey& key, std::vector<ArraySpec> specs, const DataReport& report)
      : key_(key), base_(key.Base()), specs_(std::move(specs)), report_(report) {}

  std::string Path(std::string_view suffix) const { return base_ + std::string(suffix); }

  // All arrays, if all files are there and fit. `warn`: name one that does not.
  std::optional<std::vector<NpyArray>> Load(bool warn) const {
    bool complete = Exists(Path(kDescription));
    for (const ArraySpec& spec : specs_) complete = complete && Exists(Path(spec.suffix));
    if (!complete) return std::nullopt;
    try {
      std::vector<NpyArray> arrays;
      for (const ArraySpec& spec : specs_) {
        arrays.push_back(MapNpy(Path(spec.suffix), spec.type, spec.shape));
      }
      return arrays;
    } catch (const DataError& error) {
      if (warn) report_.warn(std::string("index cache: ") + error.what() + "; built anew");
      return std::nullopt;
    }
  }

  // The description last: only a complete cache has one.
  void Store(const std::vector<std::span<const uint8_t>>& arrays) const {
    for (size_t i = 0; i < specs_.size(); ++i) {
      WriteNpy(Path(specs_[i].suffix), specs_[i].type, specs_[i].shape, arrays[i]);
    }
    WriteWhole(Path(kDescription), key_.description, {});
  }

 private:
  const CacheKey& key_;
  std::string base_;
  std::vector<ArraySpec> specs_;
  const DataReport& report_;
};

// Load, else lock, look again, build, store, load. `bytes(index)` gives the arrays to store,
// `adopt(arrays)` makes an index of mapped ones.
template <typename Index, typename Bytes, typename Adopt>
Index Cached(const CacheKey& key, std::vector<ArraySpec> specs, const DataReport& report,
             const std::function<Index()>& build, Bytes bytes, Adopt adopt) {
  const CacheFiles files(key, std::move(specs), report);
  if (const auto arrays = files.Load(false)) return adopt(files, *arrays);
  std::optional<CacheLock> lock;
  try {
    std::error_code error;
    std::filesystem::create_directories(key.folder, error);
    if (error) throw DataError("create " + key.folder + ": " + error.message());
    lock.emplace(files.Path("lock"), report);
  } catch (const DataError& error) {
    report.note(std::string("index cache not used: ") + error.what());
  }
  if (const auto arrays = files.Load(true)) return adopt(files, *arrays);
  Index index = build();
  if (!lock) return index;
  try {
    files.Store(bytes(index));
  } catch (const DataError& error) {
    report.warn(std::string("index cache not written: ") + error.what() +
                "; every process keeps its own index in memory");
    return index;
  }
  if (const auto arrays = files.Load(true)) return adopt(files, *arrays);
  return index;
}

template <typename Narrow, typename Wide>
IndexArray<Narrow, Wide> View(const CacheFiles& files, const ArraySpec& spec, const NpyArray& array,
                              bool wide) {
  int64_t size = 1;
  for (const int64_t extent : spec.shape) size *= extent;
  return IndexArray<Narrow, Wide>::Mapped(array.owner, array.data, size, wide,
                                          files.Path(spec.suffix), array.offset);
}

}  // namespace

std::string CacheKey::Base() const {
  return (std::filesystem::path(folder) / (Md5(description) + "-" + class_name + "-" + split + "-"))
      .string();
}

GptIndex LoadOrBuild(const CacheKey& key, const GptIndexShape& shape, const DataReport& report,
                     const std::function<GptIndex()>& build) {
  return Cached<GptIndex>(
      key, SpecsOf(shape), report, build,
      [](const GptIndex& index) {
        return std::vector<std::span<const uint8_t>>{index.document.bytes(), index.sample.bytes(),
                                                     index.shuffle.bytes()};
      },
      [&](const CacheFiles& files, const std::vector<NpyArray>& arrays) {
        const std::vector<ArraySpec> specs = SpecsOf(shape);
        GptIndex index;
        index.num_epochs = shape.num_epochs;
        index.document = View<int32_t, int64_t>(files, specs[0], arrays[0], false);
        index.sample = View<int32_t, int64_t>(files, specs[1], arrays[1], shape.wide_samples());
        index.shuffle = View<uint32_t, int64_t>(files, specs[2], arrays[2], shape.wide_shuffle());
        return index;
      });
}

BlendIndex LoadOrBuild(const CacheKey& key, int64_t size, const DataReport& report,
                       const std::function<BlendIndex()>& build) {
  return Cached<BlendIndex>(
      key, SpecsOfBlend(size), report, build,
      [](const BlendIndex& index) {
        return std::vector<std::span<const uint8_t>>{index.dataset.bytes(),
                                                     index.dataset_sample.bytes()};
      },
      [&](const CacheFiles& files, const std::vector<NpyArray>& arrays) {
        const std::vector<ArraySpec> specs = SpecsOfBlend(size);
        return BlendIndex{View<int16_t, int16_t>(files, specs[0], arrays[0], false),
                          View<int64_t, int64_t>(files, specs[1], arrays[1], false)};
      });
}

}  // namespace muster::data
