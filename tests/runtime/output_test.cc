#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "controller/runtime/output_folder.h"
#include "controller/runtime/output_writer.h"
#include "tests/logs/file_size_limit.h"
#include "tests/store/temp_dir.h"

namespace muster::runtime {
namespace {

using muster::testing::TempDir;
using ::testing::EndsWith;

Owner Me() {
  return {::getuid(), ::getgid()};
}

std::string Content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(OutputFolder, IsUniqueAndNamedByTimeAndJob) {
  TempDir dir;
  const auto first = MakeOutputFolder(dir.path() + "/a/output", "my job/1", 0, Me());
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(*first, EndsWith("_my_job_1"));
  const auto second = MakeOutputFolder(dir.path() + "/a/output", "my job/1", 0, Me());
  EXPECT_EQ(*second, *first + "_2");
}

TEST(OutputFolder, AFileInTheWayIsAnError) {
  TempDir dir;
  std::ofstream(dir.path() + "/output") << "x";
  const auto folder = MakeOutputFolder(dir.path() + "/output", "job", 0, Me());
  EXPECT_EQ(folder.status().message(),
            "output folder: mkdir " + dir.path() + "/output: Not a directory");
}

TEST(OutputFolder, BelongsToTheSubmitter) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root writes for others";
  TempDir dir;
  ASSERT_EQ(::chmod(dir.path().c_str(), 0777), 0);
  const Owner other{12345, 12346};
  const auto folder = MakeOutputFolder(dir.path() + "/output", "job", 0, other);
  ASSERT_TRUE(folder.ok()) << folder.status();
  ASSERT_TRUE(WriteOutput(*folder + "/why.txt", "x", other).ok());
  struct stat status {};
  for (const std::string& path : {dir.path() + "/output", *folder, *folder + "/why.txt"}) {
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, 12345u) << path;
    EXPECT_EQ(status.st_gid, 12346u) << path;
  }
  // And only where the submitter may: not in root's folder.
  TempDir roots;
  EXPECT_FALSE(MakeOutputFolder(roots.path() + "/output", "job", 0, other).ok());
}

TEST(OutputFolder, WhatDoesNotFitLeavesNoHalfLine) {
  TempDir dir;
  const std::string path = dir.path() + "/events.jsonl";
  ASSERT_TRUE(AppendOutput(path, "first\n", Me()).ok());
  {
    const logs::FileSizeLimit limit(10);
    EXPECT_FALSE(AppendOutput(path, "second\n", Me()).ok());
  }
  ASSERT_TRUE(AppendOutput(path, "third\n", Me()).ok());
  EXPECT_EQ(Content(path), "first\nthird\n");
}

TEST(OutputWriter, WritesInOrderAndBeforeItEnds) {
  TempDir dir;
  {
    OutputWriter writer;
    for (int i = 0; i < 100; ++i)
      writer.Append(dir.path() + "/log", std::to_string(i) + "\n", Me());
    writer.Write(dir.path() + "/why", "old", Me());
    writer.Write(dir.path() + "/why", "new", Me());
    writer.Write("/nonexistent/x", "lost", Me());
  }
  const std::string log = Content(dir.path() + "/log");
  EXPECT_EQ(log.substr(0, 4), "0\n1\n");
  EXPECT_THAT(log, EndsWith("98\n99\n"));
  EXPECT_EQ(Content(dir.path() + "/why"), "new");
  EXPECT_FALSE(std::filesystem::exists(dir.path() + "/why.new"));
}

}  // namespace
}  // namespace muster::runtime
