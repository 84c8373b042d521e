#include "common/for_each_item.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

namespace muster {
namespace {

TEST(ForEachItem, VisitsAllAndSaysWhatEndedIt) {
  std::string folder = "/tmp/muster_items_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::set<std::string> names;
  const auto note = [&](const std::filesystem::path& path) { names.insert(path.filename()); };
  EXPECT_FALSE(ForEachItem(folder, note));
  EXPECT_TRUE(names.empty());
  std::ofstream(folder + "/a") << "a";
  std::filesystem::create_directory(folder + "/b");
  EXPECT_FALSE(ForEachItem(folder, note));
  EXPECT_THAT(names, testing::ElementsAre("a", "b"));
  EXPECT_EQ(ForEachItem(folder + "/a", note), std::errc::not_a_directory);
  EXPECT_EQ(ForEachItem(folder + "/none", note), std::errc::no_such_file_or_directory);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace muster
