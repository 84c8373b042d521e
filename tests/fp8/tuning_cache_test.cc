#include "trainer/fp8/cuda/tuning_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "trainer/fp8/cuda/linear_gemms.h"

namespace muster::fp8::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr GemmAlgorithm kFirst{{1, 2, 3, 4, 5, 6, 7, 0xfedcba9876543210}};
constexpr GemmAlgorithm kSecond{{9}};

class TuningCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("tuning." + std::to_string(getpid()));
    file_ = folder_ / "sub" / "gemms.txt";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  TuningCache Open(const std::string& device = "NVIDIA H200", const std::string& library = "1") {
    return TuningCache(file_, device, library,
                       [this](const std::string& note) { notes_.push_back(note); });
  }
  std::string Read() const {
    std::ifstream stream(file_);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void Write(const std::string& text) { std::ofstream(file_) << text; }

  std::filesystem::path folder_, file_;
  std::vector<std::string> notes_;
};

TEST_F(TuningCacheTest, KeepsEntriesByDeviceAndLibrary) {
  TuningCache cache = Open();
  cache.Add("one product", kFirst, 12.5);
  cache.Save();
  EXPECT_EQ(Open().Find("one product"), kFirst);
  EXPECT_EQ(Open().Find("another"), std::nullopt);
  EXPECT_EQ(Open("NVIDIA B200").Find("one product"), std::nullopt);
  EXPECT_EQ(Open("NVIDIA H200", "2").Find("one product"), std::nullopt);
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(TuningCacheTest, SavesOfSeveralProcessesAddUp) {
  TuningCache a = Open(), b = Open(), other = Open("NVIDIA B200");
  a.Add("x", kFirst, 1);
  a.Save();
  b.Add("y", kSecond, 1);
  b.Save();
  other.Add("x", kSecond, 1);
  other.Save();
  a.Save();  // nothing new
  const TuningCache all = Open();
  EXPECT_EQ(all.Find("x"), kFirst);
  EXPECT_EQ(all.Find("y"), kSecond);
  EXPECT_EQ(Open("NVIDIA B200").Find("x"), kSecond);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(file_.parent_path()), {}), 1)
      << "a temporary file is left";
}

TEST_F(TuningCacheTest, AnyDamagedByteIsNoticedAndRepaired) {
  TuningCache cache = Open();
  cache.Add("x", kFirst, 1);
  cache.Save();
  const std::string good = Read();
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 4;
    Write(bad);
    notes_.clear();
    ASSERT_EQ(Open().Find("x"), std::nullopt) << i;
    ASSERT_THAT(notes_, ElementsAre(HasSubstr(file_.string() + " is damaged"))) << i;
  }
  for (size_t length = 0; length < good.size(); ++length) {
    Write(good.substr(0, length));
    ASSERT_EQ(Open().Find("x"), std::nullopt) << length;
  }
  TuningCache again = Open();
  again.Add("x", kSecond, 1);
  again.Save();
  EXPECT_EQ(Open().Find("x"), kSecond);
}

TEST_F(TuningCacheTest, UnwritableFileIsANote) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "sub") << "a file where a folder should be";
  TuningCache cache = Open();
  cache.Add("x", kFirst, 1);
  cache.Save();
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("can't be written")));
  EXPECT_EQ(cache.Find("x"), kFirst);
}

TEST_F(TuningCacheTest, WithoutFileKeepsInMemory) {
  TuningCache cache("", "d", "l", {});
  cache.Add("x", kFirst, 1);
  cache.Save();
  EXPECT_EQ(cache.Find("x"), kFirst);
}

TEST(LinearGemmsTest, NamesSayWhatIsMultiplied) {
  const LinearShape shape{8192, 6144, 4096};
  const LinearGemms fp8 = Fp8LinearGemms(shape, Format::kE5m2, {}, ElementType::kFp32);
  EXPECT_EQ(ToString(fp8.forward), "8192x6144x4096 e4m3*e4m3>bf16 fast");
  EXPECT_EQ(ToString(fp8.input_gradient), "8192x4096x6144 e5m2*e4m3>bf16");
  EXPECT_EQ(ToString(fp8.weight_gradient), "6144x4096x8192 e5m2*e4m3>fp32 accumulate");
  const LinearGemms bf16 = Bf16LinearGemms(shape, ElementType::kBf16);
  EXPECT_EQ(ToString(bf16.forward), "8192x6144x4096 bf16*bf16>bf16");
  EXPECT_EQ(ToString(bf16.input_gradient), "8192x4096x6144 bf16*bf16>bf16 right-k-outer");
  EXPECT_EQ(ToString(bf16.weight_gradient),
            "6144x4096x8192 bf16*bf16>bf16 left-k-outer right-k-outer accumulate");
  EXPECT_EQ(Flops(fp8.forward), 2.0 * 8192 * 6144 * 4096);
}

}  // namespace
}  // namespace muster::fp8::cuda
