#include "controller/stage/mapping.h"

#include <gtest/gtest.h>

namespace muster::stage {
namespace {

v1::StagedTree Staged() {
  v1::StagedTree staged;
  staged.set_content_id(std::string(64, 'a'));
  staged.set_source("/home/u/code");
  return staged;
}

TEST(Mapping, MovesPathsBelowTheSourceAndFillsTheTemplate) {
  const auto map = [](const char* word) { return MapWord(word, Staged(), "/s/x"); };
  EXPECT_EQ(map("/home/u/code"), "/s/x");
  EXPECT_EQ(map("/home/u/code/train.py"), "/s/x/train.py");
  EXPECT_EQ(map("/home/u/code2/train.py"), "/home/u/code2/train.py");
  EXPECT_EQ(map("--config=/home/u/code/a.toml"), "--config=/s/x/a.toml");
  EXPECT_EQ(map("--x=y=/home/u/code/a"), "--x=y=/home/u/code/a");
  EXPECT_EQ(map("train.py"), "train.py");
  EXPECT_EQ(map("{stage}/bin/a:{stage}/lib"), "/s/x/bin/a:/s/x/lib");
  EXPECT_EQ(map(""), "");
}

TEST(Mapping, WithoutASourceOnlyTheTemplateCounts) {
  v1::StagedTree staged = Staged();
  staged.clear_source();
  EXPECT_EQ(MapWord("/home/u/code", staged, "/s/x"), "/home/u/code");
  EXPECT_EQ(MapWord("{stage}", staged, "/s/x"), "/s/x");
}

TEST(Mapping, RanksGetFoldersOfTheirOwnNode) {
  v1::WorkerHello hello;
  hello.set_state_dir("/var/tmp/muster-0/n1");
  const std::string folder = FolderOn(Staged(), hello);
  EXPECT_EQ(folder, "/var/tmp/muster-0/n1/stage/" + std::string(24, 'a'));
  v1::RankSpec spec;
  spec.add_argv("python");
  spec.add_argv("/home/u/code/train.py");
  spec.set_working_dir("/home/u/code/sub");
  MapRank(Staged(), folder, spec);
  EXPECT_EQ(spec.argv(1), folder + "/train.py");
  EXPECT_EQ(spec.working_dir(), folder + "/sub");
  EXPECT_EQ(spec.env(0).name(), "MUSTER_STAGE");
  EXPECT_EQ(spec.env(0).value(), folder);
}

TEST(Mapping, AnswersOfAllNodesCanBeCompared) {
  v1::ProbeResult result;
  result.set_program_path("/s/x/bin/train");
  result.mutable_program()->set_path("/s/x/bin/train");
  result.add_files()->set_path("/s/x/a.toml");
  result.add_files()->set_path("/data/b");
  UnmapAnswer(Staged(), "/s/x", result);
  EXPECT_EQ(result.program_path(), "/home/u/code/bin/train");
  EXPECT_EQ(result.program().path(), "/home/u/code/bin/train");
  EXPECT_EQ(result.files(0).path(), "/home/u/code/a.toml");
  EXPECT_EQ(result.files(1).path(), "/data/b");
}

}  // namespace
}  // namespace muster::stage
