#include "trainer/checkpoint/hf_folder.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/checkpoint/temp_folder.h"
#include "trainer/checkpoint/durable_file.h"
#include "trainer/checkpoint/hf_config.h"
#include "trainer/config/error.h"

namespace muster::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

fs::path GoldenFolder() {
  return fs::path(std::getenv("MUSTER_GOLDEN")) / "llama/hf";
}

TEST(HfFolder, ReadsAPublishedFolder) {
  const HfFolder folder(GoldenFolder());
  EXPECT_EQ(folder.model().num_layers, 4);
  EXPECT_EQ(folder.Load("model.embed_tokens.weight").sizes(), (std::vector<int64_t>{512, 64}));
  EXPECT_EQ(folder.names().size(), 4u * 9 + 3);
}

TEST(HfFolder, RoundTrip) {
  const TempFolder temp;
  const HfFolder golden(GoldenFolder());
  std::vector<NamedTensor> tensors;
  for (const std::string& name : golden.names()) tensors.push_back({name, golden.Load(name)});
  WriteHfFolder(temp.path() / "out", HfConfigFromModel(golden.model(), 512, "float32"), tensors);
  const HfFolder again(temp.path() / "out");
  EXPECT_EQ(again.names(), golden.names());
  for (const std::string& name : golden.names()) {
    EXPECT_TRUE(at::equal(again.Load(name), golden.Load(name))) << name;
  }
}

class ShardedFolder : public testing::Test {
 protected:
  ShardedFolder() {
    ReplaceFile(temp_.path() / "config.json", ReadText(GoldenFolder() / "config.json"));
    WriteSafetensors(temp_.path() / "a.safetensors", {{"x", at::full({2}, 1.0)}});
    WriteSafetensors(temp_.path() / "b.safetensors", {{"y", at::full({2}, 2.0)}});
  }
  void WriteIndex(const std::string& map) {
    ReplaceFile(temp_.path() / "model.safetensors.index.json",
                R"({"metadata": {}, "weight_map": )" + map + "}");
  }
  std::string Error() {
    try {
      const HfFolder folder(temp_.path());
    } catch (const CheckpointError& error) {
      return error.what();
    }
    return "no error";
  }
  TempFolder temp_;
};

TEST_F(ShardedFolder, ReadsTheIndex) {
  WriteIndex(R"({"x": "a.safetensors", "y": "b.safetensors"})");
  const HfFolder folder(temp_.path());
  EXPECT_THAT(folder.names(), ElementsAre("x", "y"));
  EXPECT_TRUE(at::equal(folder.Load("y"), at::full({2}, 2.0)));
}

TEST_F(ShardedFolder, ASingleFileGoesFirstAsInTransformers) {
  WriteIndex(R"({"x": "a.safetensors", "y": "b.safetensors"})");
  WriteHfFolder(temp_.path(), ReadText(GoldenFolder() / "config.json"),
                {{"x", at::full({2}, 3.0)}});
  const HfFolder folder(temp_.path());
  EXPECT_THAT(folder.names(), ElementsAre("x"));
  EXPECT_TRUE(at::equal(folder.Load("x"), at::full({2}, 3.0)));
  EXPECT_TRUE(folder.Contains("x"));
  EXPECT_FALSE(folder.Contains("y"));
}

TEST_F(ShardedFolder, ErrorsNameTheFile) {
  EXPECT_THAT(Error(), HasSubstr("model.safetensors"));  // neither file nor index
  WriteIndex(R"({"x": "../a.safetensors"})");
  EXPECT_THAT(Error(), HasSubstr("not a file of this folder"));
  WriteIndex(R"({"x": "b.safetensors"})");
  EXPECT_THAT(Error(), HasSubstr("'x' is not in b.safetensors"));
  WriteIndex(R"({"x": "c.safetensors"})");
  EXPECT_THAT(Error(), HasSubstr("c.safetensors"));
  WriteIndex("3");
  EXPECT_THAT(Error(), HasSubstr("index.json"));
  ReplaceFile(temp_.path() / "config.json", "{}");
  EXPECT_THAT(Error(), HasSubstr("config.json: 'model_type' is missing"));
}

TEST(HfFolder, AMissingTensorNamesTheNearest) {
  const HfFolder folder(GoldenFolder());
  try {
    folder.Load("model.embed_token.weight");
    FAIL();
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'model.embed_tokens.weight'?"));
  }
}

}  // namespace
}  // namespace muster::checkpoint
