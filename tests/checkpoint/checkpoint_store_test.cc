#include "trainer/checkpoint/checkpoint_store.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/checkpoint/temp_folder.h"
#include "trainer/checkpoint/durable_file.h"
#include "trainer/config/error.h"

namespace muster::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTracker[] = "latest_checkpointed_iteration.txt";

std::vector<NamedTensor> Tensors(double value) {
  return {{"model.w", at::full({3, 4}, value)},
          {"optimizer.exp_avg.w", at::full({3, 4}, value + 1, at::kDouble)},
          {"fp8.scale", at::full({}, value, at::kBFloat16)}};
}

void Save(const fs::path& root, int64_t iteration) {
  CheckpointIndex index;
  index.progress = {iteration, iteration * 8, 0, iteration};
  SaveCheckpoint(root, index, Tensors(static_cast<double>(iteration)));
}

// The iteration that a resume would take, from both the index and the tensors; -1: none.
int64_t Resumed(const fs::path& root) {
  const Search search = FindNewestWhole(root);
  if (!search.found) return -1;
  auto tensors = Tensors(-5);
  LoadTensors(*search.found, tensors);
  const int64_t iteration = search.found->index.progress.iteration;
  const auto value = static_cast<double>(iteration);
  EXPECT_TRUE(at::equal(tensors[0].tensor, at::full({3, 4}, value)));
  EXPECT_TRUE(at::equal(tensors[2].tensor, at::full({}, value, at::kBFloat16)));
  return iteration;
}

void FlipByte(const fs::path& path, int64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const char c = static_cast<char>(file.get() ^ 1);
  file.seekp(at);
  file.put(c);
}

TEST(CheckpointStore, SavesAndLoads) {
  const TempFolder root;
  Save(root.path() / "new/folder", 10);
  EXPECT_EQ(Resumed(root.path() / "new/folder"), 10);
  EXPECT_EQ(ReadText(root.path() / "new/folder" / kTracker), "10\n");
  const Search search = FindNewestWhole(root.path() / "new/folder");
  EXPECT_EQ(search.found->index.progress, (Progress{10, 80, 0, 10}));
  EXPECT_TRUE(search.skipped.empty());
}

TEST(CheckpointStore, NothingThereIsNoError) {
  const TempFolder root;
  EXPECT_FALSE(FindNewestWhole(root.path()).found);
  EXPECT_FALSE(FindNewestWhole(root.path() / "missing").found);
}

TEST(CheckpointStore, ReplacesTheSameIteration) {
  const TempFolder root;
  Save(root.path(), 10);
  Save(root.path(), 10);
  EXPECT_EQ(Resumed(root.path()), 10);
  size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(root.path())) ++entries;
  EXPECT_EQ(entries, 2u);  // no leftovers
}

TEST(CheckpointStore, AnyFlippedByteIsFoundAndThePreviousOneTaken) {
  const TempFolder root;
  Save(root.path(), 10);
  Save(root.path(), 20);
  const fs::path shard = root.path() / "iter_0000020/shard_00000.safetensors";
  const auto size = static_cast<int64_t>(fs::file_size(shard));
  for (int64_t at = 0; at < size; at += 5) {
    FlipByte(shard, at);
    const Search search = FindNewestWhole(root.path());
    ASSERT_TRUE(search.found);
    EXPECT_EQ(search.found->index.progress.iteration, 10);
    EXPECT_THAT(search.skipped,
                ElementsAre("iter_0000020: shard_00000.safetensors: checksum differs"));
    FlipByte(shard, at);
  }
  EXPECT_EQ(Resumed(root.path()), 20);
}

TEST(CheckpointStore, ABrokenOneIsSkippedAndNamed) {
  const TempFolder root;
  Save(root.path(), 10);
  Save(root.path(), 20);
  const fs::path newest = root.path() / "iter_0000020";
  fs::resize_file(newest / "shard_00000.safetensors", 50);
  EXPECT_THAT(FindNewestWhole(root.path()).skipped, ElementsAre(HasSubstr("50 bytes instead of")));
  fs::remove(newest / "shard_00000.safetensors");
  EXPECT_THAT(FindNewestWhole(root.path()).skipped, ElementsAre(HasSubstr("missing")));
  fs::remove(newest / "index.json");
  EXPECT_THAT(FindNewestWhole(root.path()).skipped, ElementsAre(HasSubstr("index.json")));
  EXPECT_EQ(Resumed(root.path()), 10);
}

TEST(CheckpointStore, TheTrackerDecidesWhatIsPublished) {
  const TempFolder root;
  Save(root.path(), 10);
  Save(root.path(), 20);
  ReplaceFile(root.path() / kTracker, "10\n");  // killed before the tracker, or rolled back by hand
  EXPECT_EQ(Resumed(root.path()), 10);
  EXPECT_THAT(FindNewestWhole(root.path()).skipped, ElementsAre(HasSubstr("newer than")));
  for (const char* text : {"", "garbage", "-3"}) {
    ReplaceFile(root.path() / kTracker, text);
    EXPECT_EQ(Resumed(root.path()), 20);
  }
  fs::remove(root.path() / kTracker);
  EXPECT_EQ(Resumed(root.path()), 20);
}

TEST(CheckpointStore, LeftoversOfAKilledSaveDoNotMatter) {
  const TempFolder root;
  Save(root.path(), 10);
  fs::create_directories(root.path() / ".iter_0000020.tmp/deep");
  std::ofstream(root.path() / ".iter_0000020.tmp/shard_00000.safetensors") << "half";
  fs::create_directories(root.path() / "iter_20");
  EXPECT_EQ(Resumed(root.path()), 10);
  Save(root.path(), 20);
  EXPECT_EQ(Resumed(root.path()), 20);
}

TEST(CheckpointStore, AnotherModelIsRefusedWithBothShapes) {
  const TempFolder root;
  Save(root.path(), 10);
  const FoundCheckpoint found = *FindNewestWhole(root.path()).found;
  const auto error_of = [&found](const NamedTensor& tensor) -> std::string {
    try {
      LoadTensors(found, {tensor});
    } catch (const CheckpointError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(error_of({"model.w", at::zeros({3, 5})}),
              HasSubstr("tensor model.w: has shape [3, 4], this model's is [3, 5]"));
  EXPECT_THAT(error_of({"model.w", at::zeros({3, 4}, at::kDouble)}),
              HasSubstr("is F32, this model's is F64"));
  EXPECT_THAT(error_of({"model.x", at::zeros({3, 4})}),
              HasSubstr("model.x: not in this checkpoint"));
}

// A checkpoint of two shards, as ranks that hold slices write it.
TEST(CheckpointStore, PutsPartsOfATensorTogether) {
  const TempFolder root;
  const at::Tensor whole = at::arange(12, at::kFloat).view({4, 3});
  CheckpointIndex index;
  index.progress.iteration = 5;
  fs::create_directories(root.path() / "iter_0000005");
  for (int64_t shard = 0; shard < 2; ++shard) {
    const std::string name = "shard_" + std::to_string(shard);
    const FileSummary file = WriteSafetensors(root.path() / "iter_0000005" / name,
                                              {{"w", whole.narrow(0, 2 * shard, 2)}});
    index.shards.push_back({name, file.bytes, file.crc32c});
    index.tensors["w"].parts.push_back({shard, {2 * shard, 0}, {2, 3}});
  }
  index.tensors["w"].dtype = "F32";
  index.tensors["w"].shape = {4, 3};
  ReplaceFile(root.path() / "iter_0000005/index.json", ToJson(index));
  const at::Tensor loaded = at::zeros({4, 3});
  LoadTensors(*FindNewestWhole(root.path()).found, {{"w", loaded}});
  EXPECT_TRUE(at::equal(loaded, whole));
}

TEST(CheckpointStore, AShardOfAnotherShapeThanTheIndexSaysIsRefused) {
  const TempFolder root;
  Save(root.path(), 10);
  FoundCheckpoint found = *FindNewestWhole(root.path()).found;
  found.index.tensors["model.w"].shape = found.index.tensors["model.w"].parts[0].shape = {4, 4};
  try {
    LoadTensors(found, {{"model.w", at::zeros({4, 4})}});
    FAIL();
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), HasSubstr("its shard holds F32 [3, 4] instead of F32 [4, 4]"));
  }
}

TEST(CheckpointStore, AFailedSaveLeavesNothingBehind) {
  const TempFolder root;
  Save(root.path(), 10);
  CheckpointIndex index;
  index.progress.iteration = 20;
  // A dtype that the format does not know fails after the folder was made.
  EXPECT_ANY_THROW(SaveCheckpoint(root.path(), index, {{"c", at::zeros({2}, at::kComplexFloat)}}));
  EXPECT_FALSE(fs::exists(root.path() / ".iter_0000020.tmp"));
  EXPECT_EQ(Resumed(root.path()), 10);
}

TEST(CheckpointStore, AFolderThatCantBeMadeIsAnError) {
  const TempFolder root;
  std::ofstream(root.path() / "file") << "x";
  EXPECT_THROW(Save(root.path() / "file", 10), CheckpointError);
}

}  // namespace
}  // namespace muster::checkpoint
