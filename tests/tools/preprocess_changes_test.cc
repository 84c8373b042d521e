// Input that changes while it is read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/data/golden.h"
#include "trainer/data/data_error.h"
#include "trainer/tools/preprocess.h"

namespace muster::tools {
namespace {

using ::testing::HasSubstr;

// Appends a line to `path` while the first text is encoded.
class AppendingTokenizer : public tokenizer::Tokenizer {
 public:
  explicit AppendingTokenizer(std::string path) : path_(std::move(path)) {}
  std::unique_ptr<tokenizer::Encoder> NewEncoder(
      const tokenizer::EncoderOptions& /*options*/) const override {
    return std::make_unique<AppendingEncoder>(path_);
  }
  std::string Decode(std::span<const int32_t>) const override { return ""; }
  std::optional<int32_t> eod() const override { return std::nullopt; }
  int64_t vocab_size() const override { return 10; }

 private:
  class AppendingEncoder : public tokenizer::Encoder {
   public:
    explicit AppendingEncoder(std::string path) : path_(std::move(path)) {}
    void Encode(std::string_view, std::vector<int32_t>& ids) override {
      ids.push_back(1);
      if (appended_) return;
      std::ofstream(path_, std::ios::app) << "{\"text\": \"more\"}\n";
      appended_ = true;
    }

   private:
    std::string path_;
    bool appended_ = false;
  };

  std::string path_;
};

TEST(Preprocess, LinesThatWereNotCountedAreAnError) {
  const data::testing::TempFolder folder;
  const std::string path = (folder.path() / "in").string();
  const std::string prefix = (folder.path() / "out").string();
  // More than is in flight: its end is read after its start was encoded.
  const std::string line = "{\"text\": \"" + std::string(1000, 'x') + "\"}\n";
  std::string text;
  for (int i = 0; i < 8000; ++i) text += line;
  data::testing::WriteFile(path, text);
  PreprocessOptions options;
  options.encode.inputs = {path};
  options.encode.partitioning.count = 2;
  options.output = {.prefix = prefix, .keys = {"text"}, .partitions = 2};
  options.keep_sequential = true;
  options.progress = ProgressStyle::kNone;
  try {
    Preprocess(AppendingTokenizer(path), options);
    FAIL();
  } catch (const data::DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("8000 lines were counted, but then 8001 were read"));
  }
  EXPECT_FALSE(std::filesystem::exists(prefix + "_text_document.idx"));
}

}  // namespace
}  // namespace muster::tools
