#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "controller/hostfile/hostfile.h"

// What a person is told: each message names the thing, the reason and the way out.

namespace muster::hostfile {
namespace {

struct Case {
  std::string text;
  std::vector<std::string> mentions;
};

TEST(Messages, Mention) {
  const std::vector<Case> cases = {
      {"node01 slot=8", {"'slot'", "'slots'"}},
      {"node01 usr=x", {"'usr'", "'user'"}},
      {"node01 Slots=8", {"'Slots'", "'slots'"}},
      {"node01 gpu=0", {"'gpus'"}},
      {"node01 prot=22", {"'port'"}},
      {"node01 worker-port=7", {"'worker_port'"}},
      {"node01 spares", {"'spare'"}},
      {"node01 slots=8#x", {"space before #"}},
      {"node01#1", {"space before #"}},
      {"node01 slots = 8", {"blanks around '='"}},
      {"node01 slots= 8", {"slots=VALUE"}},
      {"node01 8", {"slots=8"}},
      {"node01 node02", {"'node02'", "one host a line", "node[01-02]"}},
      {"node01,node02", {"one host a line"}},
      {"node01:70000", {"port=N"}},
      {"node01:5000", {"port=5000"}},
      {"node{1..4}", {"brace"}},
      {"\"node01\"", {"quotes"}},
      {"^node01", {"(^)", "leave the line out"}},
      {"-oProxyCommand=x", {"starts with '-'"}},
      {"rank 0=node01", {"rankfile"}},
      {"node01 /* x */", {"use # or //"}},
      {"fe80::1", {"link-local"}},
      {"fd00::1%eth0", {"zone"}},
      {"::ffff:10.0.0.1", {"10.0.0.1"}},
      {"node01\xC2\xA0slots=8", {"no-break space", "U+00A0"}},
      {"node01\xE2\x80\x8B", {"zero-width space"}},
      {"node01\n\xEF\xBB\xBFnode02", {"BOM"}},
      {"node\xEF\xBC\x91", {"full-width digit"}},
      {"n\xC5\x93ud", {"xn--", "non-ASCII host"}},
      {"node01 type=\xC3\xA9", {"non-ASCII character", "U+00E9"}},
      {"\xB5\xDA", {"0xB5"}},
      {"n1 slots=4\nN1. slots=4", {"duplicate host N1.", "line 1", "slots=8"}},
      {"n1 addr=10.0.0.1\nn2 addr=10.0.0.1", {"10.0.0.1", "n1", "line 1"}},
      {"n1 transport=dirct", {"'direct'"}},
      {"n1 gpus=0-3 slots=8", {"4 devices", "8"}},
      {"[1-2]n", {"IPv6", "not a list"}},
      {"n[1-70000]", {"65536", "70000"}},
  };
  for (const Case& test : cases) {
    const Result result = ParseHostfile(test.text);
    ASSERT_FALSE(result.ok()) << test.text;
    for (const std::string& mention : test.mentions) {
      EXPECT_THAT(result.errors[0].message, testing::HasSubstr(mention)) << test.text;
    }
  }
}

TEST(Messages, AreOneLineOfPrintableAscii) {
  const Result result = ParseHostfile("a\x01\nn\xC3\xA9\nbad\\name!\nn1 slots=8\"#'\n");
  for (const Error& error : result.errors) {
    for (const char c : error.message) EXPECT_TRUE(c >= 0x20 && c < 0x7F) << error.message;
  }
}

TEST(FormatErrors, HasSourceAndLine) {
  EXPECT_EQ(FormatErrors("hosts", {{3, "bad"}, {0, "no hosts"}}),
            "hosts:3: bad\nhosts: no hosts\n");
}

TEST(ToJson, IsOneObject) {
  EXPECT_EQ(
      ToJson(ParseHostfile("n1 slots=2\n")),
      R"({"hosts":[{"host":"n1","port":null,"user":null,"slots":2,"line":1}],"warnings":[]})");
  EXPECT_EQ(ToJson(ParseHostfile("n1 spare\n")).substr(0, 32),
            R"({"error":{"line":0,"message":"on)");
}

}  // namespace
}  // namespace muster::hostfile
