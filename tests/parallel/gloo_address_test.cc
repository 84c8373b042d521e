#include "trainer/parallel/gloo_address.h"

#include <gtest/gtest.h>

namespace muster::parallel {
namespace {

TEST(RouteTo, LoopbackAddressesAreTheirOwnEnd) {
  const auto route = RouteTo("127.0.0.3", 29500);
  ASSERT_TRUE(route);
  EXPECT_EQ(route->remote, "127.0.0.3");
  EXPECT_TRUE(IsLoopback(route->local)) << route->local;
}

TEST(RouteTo, Ipv6) {
  const auto route = RouteTo("::1", 29500);
  if (!route) GTEST_SKIP() << "no IPv6 on this machine";
  EXPECT_EQ(route->local, "::1");
}

TEST(RouteTo, UnknownNameHasNone) {
  EXPECT_FALSE(RouteTo("no-such-host.invalid", 1));
}

TEST(IsLoopback, Kinds) {
  EXPECT_TRUE(IsLoopback("127.0.1.1"));
  EXPECT_TRUE(IsLoopback("::1"));
  EXPECT_FALSE(IsLoopback("10.0.0.1"));
  EXPECT_FALSE(IsLoopback("fd00::1"));
}

TEST(ChooseAddress, OwnRouteUnlessOnlyOthersLeaveTheMachine) {
  // All on one machine.
  EXPECT_EQ(ChooseAddress({"127.0.0.1", "127.0.0.2"}, {"127.0.0.1", "127.0.0.2"}), "127.0.0.1");
  // The master's own name maps to 127.0.1.1 there; the last rank is elsewhere.
  EXPECT_EQ(ChooseAddress({"127.0.1.1", "127.0.1.1"}, {"10.0.0.2", "10.0.0.1"}), "10.0.0.1");
  // The rank elsewhere keeps its own.
  EXPECT_EQ(ChooseAddress({"10.0.0.2", "10.0.0.1"}, {"10.0.0.2", "10.0.0.1"}), "10.0.0.2");
}

}  // namespace
}  // namespace muster::parallel
