#include "common/tls/identity.h"

#include <gtest/gtest.h>

namespace muster::tls {
namespace {

TEST(Identity, UriOfEachRoleReadsBack) {
  for (const Identity& identity :
       {Identity::Controller("lab"), Identity::Node("lab", "node-1.example.com"),
        Identity::Node("l_a.b", "fe80::1%eth0"), Identity::Node("lab", "controller")}) {
    const auto parsed = ParseIdentity(identity.Uri());
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, identity) << identity.Uri();
  }
  EXPECT_EQ(Identity::Node("lab", "node1").Uri(), "muster://lab/node1");
}

TEST(Identity, NoHostCanBeNamedLikeTheController) {
  EXPECT_FALSE(CheckHostName("@controller").ok());
  EXPECT_NE(Identity::Node("lab", "controller").Uri(), Identity::Controller("lab").Uri());
}

TEST(Identity, RefusesWhatIsNoIdentity) {
  const std::string nul("muster://lab/a\0b", 16);
  for (const std::string& uri :
       {std::string(""), std::string("https://lab/a"), std::string("muster://lab"),
        std::string("muster:///a"), std::string("muster://lab/"), std::string("muster://lab/../x"),
        std::string("muster://lab/a/b"), std::string("muster://lab/@controllers"),
        std::string("muster://.lab/a"), "muster://lab/" + std::string(254, 'a'),
        "muster://" + std::string(65, 'a') + "/a", std::string("muster://lab/a b"), nul}) {
    EXPECT_FALSE(ParseIdentity(uri).ok()) << uri;
  }
}

TEST(Identity, MessagesHoldNoControlCharacters) {
  const std::string message(CheckHostName("a\x1b[2J\nb").message());
  EXPECT_EQ(message.find('\x1b'), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

}  // namespace
}  // namespace muster::tls
