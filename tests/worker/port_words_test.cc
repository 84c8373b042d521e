// Ports that a rank's last words call in use.
#include "worker/facts/port_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "worker/facts/port.h"

namespace muster::facts {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(PortsInUse, AreOnTheLinesThatSaySo) {
  EXPECT_THAT(
      PortsInUse("step 17 of 200\ncannot bind port 29500: [Errno 98] Address already in use\n"),
      ElementsAre(29500));
  EXPECT_THAT(
      PortsInUse("The server socket has failed to listen on any local network address. port: "
                 "29501, useIpv6: false, code: -98, name: EADDRINUSE, message: address "
                 "already in use"),
      ElementsAre(29501));
  EXPECT_THAT(PortsInUse("failed to bind to [::]:29500 (errno: 98 - Address already in use)"),
              ElementsAre(29500));
  EXPECT_THAT(PortsInUse("bind 10.0.0.2:8080: address already in use"), ElementsAre(8080));
  EXPECT_THAT(PortsInUse("Address already in use 123456789012"), IsEmpty());
  EXPECT_THAT(PortsInUse("all is well on port 5"), IsEmpty());
}

TEST(DescribePortsInUse, NamesTheHolder) {
  HeldPort held = HoldPort("127.0.0.1", {}, ProcReader::Real());
  ASSERT_TRUE(held.socket) << held.error;
  const auto holders = DescribePortsInUse("OSError: [Errno 98] Address already in use", "127.0.0.1",
                                          held.port, ProcReader::Real());
  ASSERT_EQ(holders.size(), 1u);
  EXPECT_THAT(holders[0], HasSubstr("127.0.0.1:" + std::to_string(held.port) +
                                    " is in use by pid " + std::to_string(getpid())));
  EXPECT_THAT(DescribePortsInUse("all is well", "127.0.0.1", held.port, ProcReader::Real()),
              IsEmpty());
  held.socket.reset();
  EXPECT_THAT(
      DescribePortsInUse("Address already in use", "127.0.0.1", held.port, ProcReader::Real()),
      IsEmpty());
}

}  // namespace
}  // namespace muster::facts
