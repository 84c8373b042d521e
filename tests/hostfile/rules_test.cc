#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "controller/hostfile/hostfile.h"

// Bounds and order of the rules, one table a rule group of docs/hostfile.md.

namespace muster::hostfile {
namespace {

struct Case {
  std::string text;
  bool ok;
};

// One line that is a whole file by itself.
void ExpectLines(const std::vector<Case>& cases) {
  for (const Case& test : cases) {
    const Result result = ParseHostfile(test.text);
    EXPECT_EQ(result.ok(), test.ok) << test.text << "\n" << FormatErrors("file", result.errors);
  }
}

uint32_t FirstErrorLine(std::string_view text) {
  const Result result = ParseHostfile(text);
  return result.ok() ? 999999 : result.errors[0].line;
}

std::vector<std::string> Hosts(std::string_view text) {
  std::vector<std::string> out;
  const Result result = ParseHostfile(text);
  for (const v1::Host& host : result.inventory.hosts()) out.push_back(host.host());
  return out;
}

using testing::ElementsAre;
using testing::SizeIs;

TEST(Bytes, LineLength) {
  const std::string comment = "node01 #" + std::string(4096 - 8, 'x');
  ASSERT_EQ(comment.size(), 4096U);
  ExpectLines({{comment, true},
               {comment + "\n", true},
               {comment + "\r\n", true},
               {"\xEF\xBB\xBF" + comment + "\r\n", true},
               {comment + "x", false}});
}

TEST(Bytes, FileSize) {
  std::string file = "node01\n";
  while (file.size() < (size_t{16} << 20)) file += "#" + std::string(1022, 'x') + "\n";
  file.resize((size_t{16} << 20));
  EXPECT_TRUE(ParseHostfile(file).ok());
  file += "\n";
  ASSERT_FALSE(ParseHostfile(file).ok());
  EXPECT_EQ(ParseHostfile(file).errors[0].line, 0U);
}

TEST(Bytes, EncodingAndControl) {
  using namespace std::string_literals;
  EXPECT_EQ(FirstErrorLine("\xFF\xFEn\0o\0"s), 1U);
  EXPECT_EQ(FirstErrorLine("\xFE\xFF\0n\0o"s), 1U);
  EXPECT_EQ(FirstErrorLine("\xEF\xBB\xBF"), 0U);  // empty but for the mark
  EXPECT_EQ(FirstErrorLine("node01\n\xEF\xBB\xBFnode02\n"), 2U);
  ExpectLines({{"node01 # a\rb", false},
               {"node01\r\r\n", false},
               {"node01\r\n\r\n", true},
               {"node01 #\x01", false},
               {"node01 #\x7F", false},
               {"node01 # \t tab", true},
               {"node01\x0B", false},
               {"node01 # \x80\xFF", true},
               {"node\xC3\xA9", false},
               {"node01\xC2\xA0slots=8", false}});
}

TEST(Lines, Comments) {
  EXPECT_THAT(Hosts("//a\n#b\n \t#c\nn1//x"), SizeIs(0));
  EXPECT_THAT(Hosts("n1 //x\nn2 #\nn3\t#y\nn4 ## z // w\n"), ElementsAre("n1", "n2", "n3", "n4"));
  ExpectLines(
      {{"n1#1", false}, {"n1 slots=8//x", false}, {"n1 /* x */", false}, {"/* x */", false}});
}

TEST(Lines, Shape) {
  ExpectLines({{"slots=8", false},
               {"spare", true},  // a host of that name
               {"spare\nn1 spare", true},
               {"n1 slots= 8", false},
               {"n1 slots =8", false},
               {"n1 = 8", false},
               {"n1 slots", false},
               {"n1,n2", false},
               {"^n1", false},
               {"+n1", false},
               {"+e", false},
               {"rank 0=n1", false},
               {"\"n1\"", false},
               {"'n1' slots=8", false},
               {"node{1..4}", false},
               {"  n1   slots=8  ", true}});
}

TEST(Host, Users) {
  const std::string longest = "u" + std::string(31, 'x');
  ExpectLines({{"a@b@c", false},
               {"@n1", false},
               {"root@", false},
               {"-x@n1", false},
               {".x@n1", false},
               {"_x.y-z@n1", true},
               {longest + "@n1", true},
               {longest + "x@n1", false},
               {"n1 user=" + longest, true},
               {"n1 user=-x", false},
               {"root@n1 username=root", false},
               {"r:t@n1", false}});
}

TEST(Host, Names) {
  const std::string label(63, 'a');
  const std::string name = label + "." + label + "." + label + "." + std::string(61, 'a');
  ASSERT_EQ(name.size(), 253U);
  ExpectLines({{label, true},       {label + "a", false}, {name, true},     {name + ".", true},
               {name + "a", false}, {"a..b", false},      {".a", false},    {"a..", false},
               {".", false},        {"-a", false},        {"a-", false},    {"a.-b", false},
               {"a-.b", false},     {"_a_", true},        {"a--b", true},   {"a!b", false},
               {"0xa", false},      {"a.0xb", false},     {"a.0XB", false}, {"8", false},
               {"a.8", false},      {"8a", true}});
  EXPECT_THAT(ParseHostfile("g_1\nn\ng_2 # x\n").inventory.warnings(), ElementsAre(1, 3));
}

TEST(Host, Ipv4) {
  ExpectLines({{"10.0.0.1", true},
               {"10.0.0.1.", false},
               {"10.0.1", false},
               {"010.0.0.1", false},
               {"10.0.0.256", false},
               {"10.0.0.00", false},
               {"10.0.0.0", true},
               {"0.1.2.3", false},
               {"223.255.255.255", true},
               {"224.0.0.1", false},
               {"255.255.255.255", false},
               {"1.2.3.4.5", false},
               {"1.2.3.4294967297", false},
               {"a.2.3.4", false},
               {"10.0.0.[1-4]", true},
               {"10.0.0.[250-256]", false}});
}

TEST(Host, Ipv6) {
  ExpectLines({{"fd00::1", true},       {"[fd00::1]", true},
               {"u@[fd00::1]", true},   {"fd00::1%eth0", false},
               {"fe80::1", false},      {"[fe80::1%eth0]", false},
               {"febf::1", false},      {"fec0::1", true},
               {"::", false},           {"::1", true},
               {"ff02::1", false},      {"::ffff:10.0.0.1", false},
               {"::FFFF:a00:1", false}, {"[10.0.0.1]", false},
               {"[fd00::1", false},     {"[fd00::1]x", false},
               {"[fd00::1]:8", false},  {"[]", false},
               {"fd00:::1", false},     {"1:2:3:4:5:6:7:8:9", false},
               {"FD00::A", true},       {"fd00::[1-2]", false},
               {"[1-2]", false}});
  EXPECT_THAT(Hosts("[FD00::1]"), ElementsAre("FD00::1"));
}

TEST(Host, Suffix) {
  ExpectLines({{"n1:8", false},
               {"n1:", false},
               {"10.0.0.1:22", false},
               {"n[1-2]:8", false},
               {"n1:8:9", false}});
}

TEST(Hostlist, Expansion) {
  EXPECT_THAT(Hosts("n[1]"), ElementsAre("n1"));
  EXPECT_THAT(Hosts("n[05]x[7,3-4]"), ElementsAre("n05x7", "n05x3", "n05x4"));
  EXPECT_THAT(Hosts("n[08-10]"), ElementsAre("n08", "n09", "n10"));
  EXPECT_THAT(Hosts("n[98-101]"), ElementsAre("n98", "n99", "n100", "n101"));
  EXPECT_THAT(Hosts("n[99-100,0007]"), ElementsAre("n99", "n100", "n0007"));
  EXPECT_THAT(Hosts("n[08-8]"), SizeIs(0));
  EXPECT_THAT(Hosts("a[1-2][3-4]"), ElementsAre("a13", "a14", "a23", "a24"));
  EXPECT_THAT(Hosts("u@n[1-2] slots=3"), ElementsAre("n1", "n2"));
  EXPECT_THAT(Hosts("n[5-5]"), ElementsAre("n5"));
}

TEST(Hostlist, Errors) {
  ExpectLines(
      {{"n[2-1]", false},  {"n[01-9]", false},  {"n[1-09]", false},       {"n[010-99]", false},
       {"n[]", false},     {"n[1,]", false},    {"n[,1]", false},         {"n[1,,2]", false},
       {"n[a-b]", false},  {"n[1-3:2]", false}, {"n[1-2-3]", false},      {"n[1[2]]", false},
       {"n[1", false},     {"n1]", false},      {"n]1[", false},          {"n[-1]", false},
       {"n[1-]", false},   {"n[1 ,2]", false},  {"n[0123456789]", false}, {"n[999999999]", true},
       {"n[1-2]-", false}, {"n[1-2].", true}});
}

TEST(Hostlist, AtMost65536Hosts) {
  EXPECT_TRUE(ParseHostfile("n[1-65536]").ok());
  EXPECT_FALSE(ParseHostfile("n[1-65537]").ok());
  EXPECT_EQ(FirstErrorLine("n[1-65536]\nm1\n"), 2U);
  EXPECT_EQ(FirstErrorLine("a\nb\nn[0-999999999]m[0-999999999]k[0-999999999]"), 3U);
  EXPECT_EQ(FirstErrorLine("n[1-65530]\nm[1-6]\nk1\n"), 3U);
}

TEST(Options, Numbers) {
  ExpectLines({{"n slots=000000008", true},
               {"n slots=0000000008", false},
               {"n slots=+8", false},
               {"n slots=-8", false},
               {"n slots=8.0", false},
               {"n slots=0x8", false},
               {"n slots=", false},
               {"n slots=4097", false},
               {"n max_slots=4097", false},
               {"n max_slots=3 slots=4", false},
               {"n max-slots=4 slots=4", true},
               {"n max_slots=1", true},
               {"n max_slots=2 gpus=0-2", false},
               {"n port=0", false},
               {"n worker_port=65536", false},
               {"n worker_port=1", true},
               {"n slots=8 slots=8", false},
               {"n slots=8 count=8", false},
               {"n max_slots=8 max-slots=8", false},
               {"n user=a username=a", false},
               {"n spare spare", false}});
}

TEST(Options, Gpus) {
  ExpectLines({{"n gpus=0", true},
               {"n gpus=", false},
               {"n gpus=0,0", false},
               {"n gpus=0-3,2", false},
               {"n gpus=3-1", false},
               {"n gpus=3,1", true},
               {"n gpus=4095", true},
               {"n gpus=4096", false},
               {"n gpus=0-4095", true},
               {"n gpus=1-", false},
               {"n gpus=,1", false},
               {"n gpus=a", false},
               {"n gpus=0-3 slots=4", true},
               {"n slots=4 gpus=0-2", false},
               {"n gpus=2-2", true},
               {"n gpus=1;2", false},
               {"n gpus=GPU-1", false}});
}

TEST(Options, AddressesAndInterfaces) {
  ExpectLines({{"n addr=10.0.0.1", true},
               {"n addr=[fd00::1]", true},
               {"n addr=fd00::1", true},
               {"n addr=127.0.0.1", false},
               {"n addr=::1", false},
               {"n addr=fe80::1", false},
               {"n addr=node02", false},
               {"n addr=0.0.0.0", false},
               {"n addr=", false},
               {"n[1-2] addr=10.0.0.1", false},
               {"n[1] addr=10.0.0.1", true},
               {"n iface=bond0.20", true},
               {"n iface=^docker0", false},
               {"n iface==eth0", false},
               {"n iface=eth0,eth1", false},
               {"n iface=.", false},
               {"n iface=..", false},
               {"n iface=abcdefghijklmno", true},
               {"n iface=abcdefghijklmnop", false}});
  EXPECT_EQ(ParseHostfile("n addr=[fd00::1]").inventory.hosts(0).addr(), "fd00::1");
}

TEST(Options, TypesAndTransports) {
  ExpectLines({{"n type=A800-80G", true},
               {"n type=+x", false},
               {"n type=a/b", false},
               {"n type=" + std::string(64, 'x'), true},
               {"n type=" + std::string(65, 'x'), false},
               {"n transport=ssh", true},
               {"n transport=local", true},
               {"n transport=SSH", false},
               {"n transport=rsh", false}});
}

TEST(Whole, Duplicates) {
  EXPECT_EQ(FirstErrorLine("fd00::1\nfd00:0::1\n"), 2U);
  EXPECT_EQ(FirstErrorLine("FD00::A\nfd00::a\n"), 2U);
  EXPECT_EQ(FirstErrorLine("root@n1 port=22\nuser@N1. port=23 spare\n"), 2U);
  EXPECT_EQ(FirstErrorLine("n[1,1]"), 1U);
  EXPECT_EQ(FirstErrorLine("10.0.0.1\nn2 addr=10.0.0.1\n"), 2U);
  EXPECT_EQ(FirstErrorLine("n2 addr=10.0.0.1\n10.0.0.1\n"), 2U);
  EXPECT_EQ(FirstErrorLine("n1 addr=fd00::1\nn2 addr=fd00:0:0::1\n"), 2U);
  EXPECT_TRUE(ParseHostfile("10.0.0.1 addr=10.0.0.1\n10.0.0.2\n").ok());
  EXPECT_TRUE(ParseHostfile("n1\nn01\nn1.x\n").ok());
  const Result result = ParseHostfile("n[1-3]\nm\nn[3-5]\nn[4-5]\n");
  ASSERT_THAT(result.errors, SizeIs(1));  // line 3 failed as a whole, so line 4 is no duplicate
  EXPECT_EQ(result.errors[0].line, 3U);
  EXPECT_EQ(result.errors[0].other_line, 1U);
}

TEST(Whole, Loopback) {
  EXPECT_TRUE(
      ParseHostfile("localhost\nLOCALHOST.localdomain.\na.localhost\n127.0.0.9\n::1\n").ok());
  EXPECT_EQ(FirstErrorLine("n1\n\n[0:0::1]\n127.0.0.1\n"), 3U);
  EXPECT_EQ(FirstErrorLine("ip6-localhost\nn1 spare\n"), 1U);
  EXPECT_EQ(FirstErrorLine("n1 slots=x\nlocalhost\nn2\n"),
            1U);  // a failed line hides whole-file rules
}

TEST(Whole, NoHost) {
  EXPECT_EQ(FirstErrorLine(""), 0U);
  EXPECT_EQ(FirstErrorLine(" \n\t\n"), 0U);
  EXPECT_EQ(FirstErrorLine("n1 spare\n"), 0U);
}

TEST(Whole, ReportsUpTo20) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += "n1 slots=x\n";
  const Result result = ParseHostfile(text);
  ASSERT_THAT(result.errors, SizeIs(20));
  EXPECT_EQ(result.errors[19].line, 20U);
  EXPECT_EQ(result.inventory.hosts_size(), 0);
}

TEST(HostList, Items) {
  EXPECT_TRUE(ParseHostList("n[1-2,7]:4,u@m,[fd00::1]:2,fd00::1:2").ok());
  EXPECT_EQ(ParseHostList("n1:8,n2").inventory.source(), "--host");
  for (const char* bad : {"", "n1,", ",n1", "n1:", "n1:x", "n1:4097", "n1;n2", "n1 ", "n1:1:2",
                          "[fd00::1]8", "n[1-2", "n1=3", "n1\n", "n\xC3\xA9", "10.0.0.256:8"}) {
    EXPECT_FALSE(ParseHostList(bad).ok()) << bad;
  }
  EXPECT_EQ(ParseHostList("a,b,c:0").errors[0].line, 3U);
  EXPECT_EQ(ParseHostList("g_1,n2").inventory.warnings(0), 1U);
}

TEST(ReadHostfile, UnreadableIsAnErrorThatNamesThePath) {
  const Result missing = ReadHostfile("/nonexistent/hosts");
  ASSERT_THAT(missing.errors, SizeIs(1));
  EXPECT_EQ(missing.errors[0].line, 0U);
  EXPECT_THAT(missing.errors[0].message, testing::HasSubstr("/nonexistent/hosts"));
  EXPECT_FALSE(ReadHostfile("/").ok());  // a folder
}

}  // namespace
}  // namespace muster::hostfile
