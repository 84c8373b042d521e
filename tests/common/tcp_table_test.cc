#include "common/tcp_table.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(TcpTable, BothFamilies) {
  const auto table = ParseTcpTable(
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
      "inode\n"
      "   0: 0200007F:1D29 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 "
      "4711 1\n"
      "   1: 0100007F:1D29 0100007F:C001 01 00000000:00000000 00:00000000 00000000  1001        0 "
      "4712 1\n"
      "   2: 0000000000000000FFFF00000100007F:1D2A 0000000000000000FFFF00000100007F:C002 01 0:0 "
      "0:0 0 7 0 9\n"
      "   garbage\n");
  ASSERT_EQ(table.size(), 3u);
  EXPECT_TRUE(table[0].listening);
  EXPECT_EQ(table[0].local, (TcpEnd{std::string("\x7f\0\0\x02", 4), 7465}));
  EXPECT_EQ(table[0].inode, 4711u);
  EXPECT_TRUE(table[0].remote.IsAny());
  EXPECT_EQ(table[2].local.address, std::string("\x7f\0\0\x01", 4));  // mapped
  EXPECT_EQ(OwnerOfConnection(table, table[1].local, table[1].remote), 1001u);
  EXPECT_EQ(OwnerOfConnection(table, table[0].local, table[1].remote), std::nullopt);
}

TEST(TcpTable, AClosedSocketIsNotRoots) {
  // What the kernel shows of a socket that user 1001 has closed: FIN_WAIT2, uid 0, inode 0.
  const auto table = ParseTcpTable(
      "headings\n"
      "   0: 0100007F:8D96 0100007F:1D29 05 0:0 3:17 0 0 0 0 2\n");
  ASSERT_EQ(table.size(), 1u);
  EXPECT_EQ(OwnerOfConnection(table, table[0].local, table[0].remote), std::nullopt);
}

TEST(TcpTable, AListenerOnTheAddressItselfGoesBeforeOneOnAll) {
  const TcpEnd end{std::string("\x7f\0\0\x02", 4), 7465};
  const std::string any = "0: 00000000:1D29 00000000:0000 0A 0:0 0:0 0 1000 0 4711 1\n";
  const std::string own = "1: 0200007F:1D29 00000000:0000 0A 0:0 0:0 0 1001 0 4712 1\n";
  const std::string other = "2: 0300007F:1D29 00000000:0000 0A 0:0 0:0 0 1002 0 4713 1\n";
  EXPECT_EQ(OwnerOfListener(ParseTcpTable("headings\n" + any + own + other), end), 1001u);
  EXPECT_EQ(OwnerOfListener(ParseTcpTable("headings\n" + any + other), end), 1000u);
  EXPECT_EQ(OwnerOfListener(ParseTcpTable("headings\n" + other), end), std::nullopt);
}

}  // namespace
}  // namespace muster
