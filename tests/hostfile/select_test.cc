#include "controller/hostfile/select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "controller/hostfile/hostfile.h"

namespace muster::hostfile {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

v1::Inventory Hosts(std::string_view text) {
  Result result = ParseHostfile(text);
  EXPECT_TRUE(result.ok()) << FormatErrors("hosts", result.errors);
  result.inventory.set_source("hosts");
  return result.inventory;
}

// "a:8", with devices "a:0,2".
std::vector<std::string> Shown(const v1::Inventory& inventory) {
  std::vector<std::string> out;
  for (const v1::Host& host : inventory.hosts()) {
    std::string text = host.host() + ":";
    if (host.gpus_size() == 0) {
      text += host.has_slots() ? "all " + std::to_string(host.slots()) : "all";
    }
    for (int i = 0; i < host.gpus_size(); ++i) {
      text += (i > 0 ? "," : "") + std::to_string(host.gpus(i));
    }
    EXPECT_TRUE(host.gpus_size() == 0 || host.slots() == static_cast<uint32_t>(host.gpus_size()));
    out.push_back(text);
  }
  return out;
}

std::vector<std::string> Including(std::string_view hosts, std::string_view text) {
  v1::Inventory inventory = Hosts(hosts);
  const absl::Status status = Include(text, &inventory);
  EXPECT_TRUE(status.ok()) << status;
  return Shown(inventory);
}

std::vector<std::string> Excluding(std::string_view hosts, std::string_view text) {
  v1::Inventory inventory = Hosts(hosts);
  const absl::Status status = Exclude(text, &inventory);
  EXPECT_TRUE(status.ok()) << status;
  return Shown(inventory);
}

std::string Refused(std::string_view hosts, std::string_view text, bool include = true) {
  v1::Inventory inventory = Hosts(hosts);
  const std::vector<std::string> before = Shown(inventory);
  const absl::Status status = include ? Include(text, &inventory) : Exclude(text, &inventory);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  EXPECT_EQ(Shown(inventory), before) << "changed by an error";
  return std::string(status.message());
}

constexpr char kPool[] = "a slots=4\nb slots=4\nc slots=4\nd slots=4 spare\n";

TEST(Include, KeepsNamedHostsInTheHostfilesOrder) {
  EXPECT_THAT(Including(kPool, "c@a"), ElementsAre("a:all 4", "c:all 4", "d:all 4"));
  EXPECT_THAT(Including(kPool, "b:0,2@c:1-3"), ElementsAre("b:0,2", "c:1,2,3", "d:all 4"));
  EXPECT_THAT(Including("n1 slots=2\nn2 slots=2\nn3 slots=2\n", "n[1-2]:1"),
              ElementsAre("n1:1", "n2:1"));
  EXPECT_THAT(Including("Node01. slots=2\nb slots=1\n", "node01"), ElementsAre("Node01.:all 2"));
}

TEST(Include, DevicesAreThoseOfTheHostfile) {
  EXPECT_THAT(Including("a gpus=7,5,3\n", "a:3,7"), ElementsAre("a:3,7"));
  EXPECT_THAT(Including("a\nb\n", "b:0,1"), ElementsAre("b:0,1"));
  EXPECT_THAT(Refused("a gpus=7,5,3\n", "a:0"),
              AllOf(HasSubstr("a has no device 0"), HasSubstr("hosts:1"), HasSubstr("7, 5, 3")));
}

TEST(Exclude, DropsHostsAndDevices) {
  EXPECT_THAT(Excluding(kPool, "b"), ElementsAre("a:all 4", "c:all 4", "d:all 4"));
  EXPECT_THAT(Excluding(kPool, "b:1@d"), ElementsAre("a:all 4", "b:0,2,3", "c:all 4"));
  EXPECT_THAT(Excluding("a gpus=7,5,3\nb slots=1\n", "a:5"), ElementsAre("a:7,3", "b:all 1"));
  EXPECT_THAT(Excluding("a slots=2\nb slots=2\n", "a:0,1"), ElementsAre("b:all 2"));
  EXPECT_THAT(Refused("a slots=2\nb slots=2 spare\n", "a:0,1", false),
              HasSubstr("no host of hosts is left"));
  EXPECT_THAT(Refused("a\nb slots=1\n", "a:0", false), HasSubstr("slots=N"));
}

TEST(Select, TheHostfileDecidesBetweenUserAndHost) {
  EXPECT_THAT(Including("root@h1 slots=2\nh2 slots=2\n", "root@h1"), ElementsAre("h1:all 2"));
  EXPECT_THAT(Including("root@h1 slots=2\nh2 slots=2\n", "root@h1:1@h2"),
              ElementsAre("h1:1", "h2:all 2"));
  EXPECT_THAT(Including("root@h1 slots=2\nroot@h2 slots=2\n", "root@h[1-2]:0"),
              ElementsAre("h1:0", "h2:0"));
  EXPECT_THAT(Including("root slots=2\nh1 slots=2\n", "root@h1"),
              ElementsAre("root:all 2", "h1:all 2"));
  EXPECT_THAT(Including("h1 user=bob slots=2\nh2 slots=1\n", "bob@h1"), ElementsAre("h1:all 2"));
}

TEST(Select, RealAmbiguityIsAnError) {
  constexpr char kBoth[] = "root slots=2\nroot@h1 slots=2\n";
  EXPECT_THAT(Refused(kBoth, "root@h1"),
              AllOf(HasSubstr("two things"), HasSubstr("host h1 of user root")));
  // What the message says to write.
  EXPECT_THAT(Including(kBoth, "h1"), ElementsAre("h1:all 2"));
  EXPECT_THAT(Including(kBoth, "h1@root"), ElementsAre("root:all 2", "h1:all 2"));
}

TEST(Select, WrongUsersAreExplained) {
  EXPECT_THAT(Refused("root@h1 slots=2\n", "bob@h1"),
              AllOf(HasSubstr("'bob' is no host"), HasSubstr("user root"), HasSubstr("hosts:1")));
  EXPECT_THAT(Refused("h1 slots=2\n", "root@h1"), HasSubstr("no user"));
}

TEST(Select, Ipv6) {
  EXPECT_THAT(Including("fd00::1 slots=2\nfd00::2 slots=2\n", "[fd00::1]:1@fd00:0::2"),
              ElementsAre("fd00::1:1", "fd00::2:all 2"));
  EXPECT_THAT(Refused("fd00::1 slots=2\n", "fd00::1:0"), HasSubstr("write [fd00::1]:0"));
}

TEST(Select, ErrorsNameTheWord) {
  EXPECT_THAT(Refused("node01 slots=2\n", "node02"), HasSubstr("did you mean 'node01'"));
  EXPECT_THAT(Refused("a slots=2\n", "a@a"), HasSubstr("named twice"));
  EXPECT_THAT(Refused("a slots=2\n", "a:"), HasSubstr("devices are missing"));
  EXPECT_THAT(Refused("a slots=2\n", "a:x"), HasSubstr("a:x"));
  EXPECT_THAT(Refused("a slots=2\n", "a:1,1"), HasSubstr("device 1 is named twice"));
  EXPECT_THAT(Refused("a slots=2\n", "@a"), HasSubstr("a host is missing"));
  EXPECT_THAT(Refused("a slots=2\n", ""), HasSubstr("a host is missing"));
  EXPECT_THAT(Refused(kPool, "d"), AllOf(HasSubstr("spare"), HasSubstr("hosts:4")));
}

// What is included and what is excluded are the two halves of the hostfile.
RC_GTEST_PROP(Select, IncludeAndExcludeAreHalves, ()) {
  const auto slots = *rc::gen::resize(
      20, rc::gen::nonEmpty(
              rc::gen::container<std::vector<uint32_t>>(rc::gen::inRange<uint32_t>(1, 9))));
  std::string hostfile;
  std::string text;
  size_t wanted = 0;
  size_t total = 0;
  for (size_t h = 0; h < slots.size(); ++h) {
    hostfile += "n" + std::to_string(h) + " slots=" + std::to_string(slots[h]) + "\n";
    total += slots[h];
    std::string devices;
    for (uint32_t d = 0; d < slots[h]; ++d) {
      if (!*rc::gen::arbitrary<bool>()) continue;
      devices += (devices.empty() ? ":" : ",") + std::to_string(d);
      ++wanted;
    }
    if (!devices.empty()) text += (text.empty() ? "" : "@") + ("n" + std::to_string(h)) + devices;
  }
  RC_PRE(wanted > 0U && wanted < total);
  const auto all_devices = [&](bool include) {
    v1::Inventory inventory = ParseHostfile(hostfile).inventory;
    RC_ASSERT((include ? Include(text, &inventory) : Exclude(text, &inventory)).ok());
    std::set<std::pair<std::string, uint32_t>> out;
    for (const v1::Host& host : inventory.hosts()) {
      for (uint32_t i = 0; i < host.slots(); ++i) {
        out.emplace(host.host(), host.gpus_size() > 0 ? host.gpus(static_cast<int>(i)) : i);
      }
    }
    return out;
  };
  auto both = all_devices(true);
  RC_ASSERT(both.size() == wanted);
  both.merge(all_devices(false));
  RC_ASSERT(both.size() == total);
}

// Whatever is typed is taken or refused, and a refusal changes nothing.
RC_GTEST_PROP(Select, AnyText, ()) {
  const std::string text =
      *rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab01:,@[]-. \t\xc3")));
  for (const auto& select : {Include, Exclude}) {
    v1::Inventory inventory =
        ParseHostfile("a slots=2\nb@a0 gpus=1,0\n[fd::1] slots=1\n").inventory;
    const std::string before = inventory.SerializeAsString();
    if (select(text, &inventory).ok()) {
      RC_ASSERT(inventory.hosts_size() > 0);
    } else {
      RC_ASSERT(inventory.SerializeAsString() == before);
    }
  }
}

}  // namespace
}  // namespace muster::hostfile
