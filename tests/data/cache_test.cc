// Index caches: Megatron's bytes, found again, shared by many builders, and damaged in every way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "tests/data/tokens.h"
#include "trainer/data/gpt_source.h"
#include "trainer/data/index_cache.h"
#include "trainer/data/indexed_dataset.h"
#include "trainer/data/npy_file.h"

namespace muster::data {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Npy, HeadersAreNumpys) {
  const fs::path golden = testing::GoldenRoot() / "megatron" / "cache";
  const auto head = [&](const char* file, const std::string& header) {
    EXPECT_EQ(testing::ReadFile(golden / file).substr(0, header.size()), header) << file;
    return header.size();
  };
  EXPECT_EQ(head("train-0-document_index.npy", NpyHeader("<i4", {1240})), 128U);
  head("train-0-sample_index.npy", NpyHeader("<i4", {38, 2}));
  head("train-0-shuffle_index.npy", NpyHeader("<u4", {37}));
  head("train-dataset_index.npy", NpyHeader("<i2", {537}));
  head("train-dataset_sample_index.npy", NpyHeader("<i8", {537}));
}

class CacheTest : public testing::TokensTest {
 protected:
  CacheTest() {
    Write({7, 3, 20, 1, 30, 3});
    config_.seq_length = 4;
    config_.train_samples = 15;
    config_.vocab_size = 64;
    config_.use_index_cache = true;
    config_.data_cache_path = cache_.string();
    config_.report.warn = [this](const std::string& text) { warnings_.push_back(text); };
    config_.report.note = [this](const std::string& text) {
      if (text.find("sample order") == std::string::npos) notes_.push_back(text);
    };
  }

  // The tokens of all samples.
  std::vector<std::vector<int64_t>> Samples() {
    const Datasets built = BuildDatasets(config_);
    std::vector<std::vector<int64_t>> all;
    for (int64_t i = 0; i < built.train->size(); ++i) all.push_back(Tokens(*built.train, i));
    return all;
  }
  bool IsMapped() const {
    const Datasets built = BuildDatasets(config_);
    const auto& source = dynamic_cast<const GptSource&>(*built.train);
    return source.index().document.Where(0).find(".npy, offset 128") != std::string::npos;
  }
  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(cache_)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
  }
  fs::path FileOf(const std::string& suffix) const {
    for (const fs::path& file : Files()) {
      if (file.string().ends_with(suffix)) return file;
    }
    throw std::runtime_error("no " + suffix);
  }

  // In memory where there is such a place: every cache that is written is synced.
  testing::TempFolder root_{fs::is_directory("/dev/shm") ? fs::path("/dev/shm")
                                                         : fs::temp_directory_path()};
  fs::path cache_ = root_.path() / "deep" / "cache";
  std::vector<std::string> warnings_;
  std::vector<std::string> notes_;
};

TEST_F(CacheTest, IsWrittenAndFoundAgain) {
  config_.use_index_cache = false;
  const auto samples = Samples();
  config_.use_index_cache = true;
  EXPECT_EQ(Samples(), samples);
  EXPECT_THAT(Files(), SizeIs(4)) << "no lock and no temporary file stays";
  const auto time = fs::last_write_time(FileOf("shuffle_index.npy"));
  EXPECT_EQ(Samples(), samples);
  EXPECT_TRUE(IsMapped());
  EXPECT_EQ(fs::last_write_time(FileOf("shuffle_index.npy")), time);
  config_.seed = 7;
  EXPECT_NE(Samples(), samples);
  EXPECT_THAT(Files(), SizeIs(8)) << "another seed is another cache";
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(CacheTest, WithoutAFolderItLiesWhereMegatronPutsIt) {
  config_.data_cache_path.clear();
  Samples();
  EXPECT_TRUE(fs::is_directory(Prefix("x") + "/cache/GPTDataset_indices"));
}

TEST_F(CacheTest, BlendsAreCachedToo) {
  Write({50, 9}, "y");
  config_.paths.data_path = {"1", Prefix("x"), "2", Prefix("y")};
  const auto samples = Samples();
  EXPECT_THAT(Files(), SizeIs(2 * 4 + 3));
  EXPECT_EQ(Samples(), samples);
  // A draw that its data set does not have.
  const fs::path file = FileOf("dataset_sample_index.npy");
  std::string bytes = testing::ReadFile(file);
  bytes[128 + 8 * 3] = 120;
  testing::WriteFile(file, bytes);
  EXPECT_THAT(Error(), HasSubstr("dataset_sample_index.npy, offset 152: the blend asks data set"));
  // One that no data set can have.
  bytes.replace(128 + 8 * 3, 8, std::string(8, '\xff'));
  testing::WriteFile(file, bytes);
  EXPECT_THAT(Error(), HasSubstr("dataset_sample_index.npy, offset 152: sample -1 of data set"));
  EXPECT_THAT(Error(), HasSubstr("the index is damaged; remove this file"));
}

TEST_F(CacheTest, AnIncompleteCacheIsCompleted) {
  const auto samples = Samples();
  fs::remove(FileOf("description.txt"));
  EXPECT_EQ(Samples(), samples);
  EXPECT_THAT(Files(), SizeIs(4));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(CacheTest, EveryTruncationIsNamedAndReplaced) {
  const auto samples = Samples();
  const fs::path file = FileOf("sample_index.npy");
  const std::string bytes = testing::ReadFile(file);
  for (size_t size = 0; size < bytes.size(); size += 7) {
    testing::WriteFile(file, bytes.substr(0, size));
    warnings_.clear();
    ASSERT_EQ(Samples(), samples) << size;
    ASSERT_THAT(warnings_, ElementsAre(HasSubstr(file.string() + ", offset "))) << size;
    ASSERT_EQ(testing::ReadFile(file), bytes) << size;
  }
}

// docs/formats.md says for each part of each file what a changed byte does.
TEST_F(CacheTest, EveryFlippedByteIsReplacedOrReadAsDocumented) {
  const auto samples = Samples();
  for (const fs::path& file : Files()) {
    const std::string bytes = testing::ReadFile(file);
    const bool is_array = file.extension() == ".npy";
    for (size_t at = 0; at < bytes.size(); ++at) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
      testing::WriteFile(file, damaged);
      warnings_.clear();
      const std::string where = file.filename().string() + " " + std::to_string(at);
      if (!is_array) {  // for people only
        ASSERT_EQ(Samples(), samples) << where;
        ASSERT_THAT(warnings_, IsEmpty()) << where;
      } else if (at < 128) {  // the header: built anew
        ASSERT_EQ(Samples(), samples) << where;
        ASSERT_THAT(warnings_, ElementsAre(HasSubstr(file.string() + ", offset "))) << where;
        ASSERT_EQ(testing::ReadFile(file), bytes) << where;
      } else {  // an element: the place is named, or other tokens of the same data are read
        try {
          for (const auto& sample : Samples()) {
            for (const int64_t token : sample) ASSERT_TRUE(token >= 0 && token < 64) << where;
          }
        } catch (const DataError& error) {
          ASSERT_THAT(error.what(), HasSubstr("_index.npy, offset ")) << where;
        }
        ASSERT_THAT(warnings_, IsEmpty()) << where;
      }
      testing::WriteFile(file, bytes);
    }
  }
}

TEST_F(CacheTest, AFolderThatCannotBeUsedIsNoError) {
  testing::WriteFile(folder_.path() / "file", "");
  config_.data_cache_path = (folder_.path() / "file" / "cache").string();
  EXPECT_THAT(Samples(), SizeIs(15));
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("index cache not used: create ")));
  config_.data_cache_path = "/proc/self/task";  // no file can be made here, not even by root
  EXPECT_THAT(Samples(), SizeIs(15));
  EXPECT_THAT(notes_, SizeIs(2));
}

// While it lives, this process can't make a file longer than `bytes`.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST_F(CacheTest, AFullDiskIsAWarning) {
  {
    const FileSizeLimit limit(140);
    EXPECT_THAT(Samples(), SizeIs(15));
  }
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("index cache not written: write ")));
  EXPECT_THAT(Files(), IsEmpty()) << "nothing half written stays";
}

TEST_F(CacheTest, ManyProcessesAndThreadsBuildOneCacheTogether) {
  config_.use_index_cache = false;
  const auto samples = Samples();
  config_.use_index_cache = true;
  config_.report = {};
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(Samples() == samples && IsMapped() ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_THAT(Files(), SizeIs(4));

  fs::remove_all(cache_);
  const GptIndexParams params{.end_sequence = 6, .num_samples = 15, .seq_length = 4};
  const IndexedDataset store(Prefix("x"));
  const GptIndexShape shape = ShapeOf(64, params);
  const CacheKey key{cache_.string(), "GPTDataset", "train", "one"};
  std::atomic<int> builds = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      LoadOrBuild(key, shape, {}, std::function<GptIndex()>([&] {
                    ++builds;
                    std::this_thread::sleep_for(std::chrono::milliseconds(20));
                    return BuildGptIndex(store.lengths(), shape, params, 2);
                  }));
    });
  }
  threads.clear();
  EXPECT_EQ(builds, 1) << "one builds, the others wait and map";
}

}  // namespace
}  // namespace muster::data
