#include "controller/nodes/ssh/ssh_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nodes/ssh/memory_source.h"

namespace muster::nodes::ssh {
namespace {

std::string Error(const std::vector<std::string>& words) {
  return std::string(ParseSshWords(words).status().message());
}

TEST(SshWordsTest, OptionsOfSsh) {
  const auto request =
      ParseSshWords({"-F", "~/c", "-oPort=5", "-i", "/k e", "-J", "a,b@c:1", "-l", "ann", "-p22"});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->file, "~/c");
  EXPECT_EQ(request->user, "ann");
  EXPECT_EQ(request->port, 22);
  EXPECT_THAT(request->options,
              testing::ElementsAre("Port=5", "IdentityFile=\"/k e\"", "ProxyJump=a,b@c:1"));
  EXPECT_TRUE(ParseSshWords({})->options.empty());
}

TEST(SshWordsTest, AnyPathOfAKeyArrivesAsItIs) {
  for (const std::string path :
       {"/k \"e\"", "/back\\slash", "/it's", "/#x = y", "/end\\", "/\\\""}) {
    auto request = ParseSshWords({"-i", path});
    ASSERT_TRUE(request.ok()) << request.status();
    request->host = "h";
    MemorySource source;
    const auto config = ReadConfig(*request, source);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_THAT(config->identity_files, testing::ElementsAre(path));
  }
}

TEST(SshWordsTest, WhatIsWrong) {
  EXPECT_EQ(Error({"-F"}), "-F needs a value");
  EXPECT_EQ(Error({"host"}), "'host' is no option of ssh");
  EXPECT_EQ(Error({"-p", "0"}), "-p 0 is not in 1 to 65535");
  EXPECT_EQ(Error({"-l", "-x"}), "-l -x is no user name");
  EXPECT_THAT(Error({"-i", "key"}), testing::HasSubstr("write the whole path"));
  EXPECT_THAT(Error({"-A"}), testing::HasSubstr("use transport openssh"));
  EXPECT_THAT(Error({"-J", "a,"}), testing::HasSubstr("is not [USER@]HOST[:PORT]"));
}

}  // namespace
}  // namespace muster::nodes::ssh
