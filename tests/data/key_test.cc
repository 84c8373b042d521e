// The names of index caches are Megatron's: descriptions to the byte, and their MD5.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/data/golden.h"
#include "trainer/data/md5.h"
#include "trainer/data/megatron_key.h"
#include "trainer/data/python_json.h"

namespace muster::data {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

namespace python = python_json;

TEST(Md5, VectorsOfItsRfc) {
  EXPECT_EQ(Md5(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(Md5("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(Md5("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(Md5("1234567890123456789012345678901234567890123456789012345678901234567890123456789"
                "0"),
            "57edf4a22be3c955ac49da2e2107b67a");
}

TEST(PythonJson, FloatsAreReprs) {
  EXPECT_EQ(python::Float(0.0), "0.0");
  EXPECT_EQ(python::Float(1.0), "1.0");
  EXPECT_EQ(python::Float(0.1), "0.1");
  EXPECT_EQ(python::Float(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(python::Float(0.9500000000000001), "0.9500000000000001");
  EXPECT_EQ(python::Float(0.0001), "0.0001");
  EXPECT_EQ(python::Float(0.00001), "1e-05");
  EXPECT_EQ(python::Float(1.5e-7), "1.5e-07");
  EXPECT_EQ(python::Float(1e15), "1000000000000000.0");
  EXPECT_EQ(python::Float(1e16), "1e+16");
  EXPECT_EQ(python::Float(5e-324), "5e-324");
}

TEST(PythonJson, TextsAreAscii) {
  EXPECT_EQ(python::Text("a/\"b\"\\\n\x7f"), "\"a/\\\"b\\\"\\\\\\n\\u007f\"");
  EXPECT_EQ(python::Text("d\xc3\xa9j\xc3\xa0 \xe8\xaf\x97 \xf0\x9f\x98\x80"),
            "\"d\\u00e9j\\u00e0 \\u8bd7 \\ud83d\\ude00\"");
  EXPECT_EQ(python::Text("\xff\xc3"), "\"\\udcff\\udcc3\"") << "bytes that are not UTF-8";
  EXPECT_EQ(python::List({}), "[]");
  EXPECT_EQ(python::Dict({{"a", python::List({"1", "null"})}}),
            "{\n    \"a\": [\n        1,\n        null\n    ]\n}");
}

DataConfig ConfigOf(const ordered_json& description) {
  DataConfig config;
  config.seed = description["random_seed"];
  config.seq_length = description["sequence_length"];
  std::vector<std::pair<std::string, std::string>> tokenizer;
  for (const auto& [key, value] : description["tokenizer"].items()) {
    tokenizer.emplace_back(key, value.is_null() ? "null" : python::Text(value.get<std::string>()));
  }
  config.tokenizer_identity = python::Dict(tokenizer);
  return config;
}

Split SplitOf(const std::string& name) {
  for (const Split split : kSplits) {
    if (name == NameOf(split)) return split;
  }
  throw std::runtime_error(name);
}

std::string OurDescription(const std::string& golden) {
  const ordered_json want = ordered_json::parse(golden);
  Part part;
  if (!want["dataset_path"].is_null()) part.prefix = want["dataset_path"];
  part.split = SplitOf(want["index_split"]);
  if (!want["num_samples"].is_null()) part.samples = want["num_samples"].get<int64_t>();
  std::optional<std::string> shares;
  if (!want["split"].is_null()) shares = want["split"].get<std::string>();
  return DescriptionOf(ConfigOf(want), part, shares);
}

TEST(MegatronKey, GoldenDescriptionsAndTheirMd5) {
  int datasets = 0, blends = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(testing::GoldenRoot() / "megatron" / "gpt")) {
    const json golden = testing::ReadJson(entry.path());
    for (const auto& [name, split] : golden["splits"].items()) {
      if (split.is_null()) continue;
      std::vector<std::string> parts;
      for (const json& dataset : split["datasets"]) {
        parts.push_back(OurDescription(dataset["description"]));
        EXPECT_EQ(parts.back(), dataset["description"]) << entry.path();
        EXPECT_EQ(Md5(parts.back()), dataset["description_md5"]);
        ++datasets;
      }
      if (!split.contains("description")) continue;
      std::vector<std::string> weights;
      for (const json& weight : split["weights"]) {
        weights.push_back(weight.is_number_integer() ? python::Integer(weight)
                                                     : python::Float(weight));
      }
      const CacheKey key =
          BlendKey({}, SplitOf(name), parts, weights,
                   split["size"].is_null() ? "null" : python::Integer(split["size"]));
      EXPECT_EQ(key.description, split["description"]) << entry.path();
      EXPECT_EQ(key.Base(),
                split["description_md5"].get<std::string>() + "-BlendedDataset-" + name + "-");
      ++blends;
    }
  }
  EXPECT_GE(datasets, 40);
  EXPECT_GE(blends, 5);
}

TEST(MegatronKey, WithoutAFolderTheCacheLiesBesideTheData) {
  Part part;
  part.prefix = "data/text_document";
  const CacheKey key = PartKey({}, part, "x");
  EXPECT_EQ(key.Base(),
            "data/text_document/cache/GPTDataset_indices/" + Md5("x") + "-GPTDataset-train-");
}

}  // namespace
}  // namespace muster::data
