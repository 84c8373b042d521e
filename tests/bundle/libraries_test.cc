#include "controller/bundle/libraries.h"

#include <gtest/gtest.h>

namespace muster::bundle {
namespace {

// Of ldd 2.36.
constexpr char kLdd[] =
    "\tlinux-vdso.so.1 (0x00007fff1b5f2000)\n"
    "\tlibfmt.so.9 => /lib/x86_64-linux-gnu/libfmt.so.9 (0x00007f2b0c000000)\n"
    "\tlibtorch_cpu.so => /a b/torch/lib/libtorch_cpu.so (0x00007f2af0000000)\n"
    "\tlibgone.so.1 => not found\n"
    "\t/lib64/ld-linux-x86-64.so.2 (0x00007f2b0c200000)\n";

TEST(Libraries, AreReadFromTheLoadersList) {
  const auto libraries = ParseLdd(kLdd);
  ASSERT_EQ(libraries.size(), 3u);
  EXPECT_EQ(libraries[0].name, "libfmt.so.9");
  EXPECT_EQ(libraries[0].path, "/lib/x86_64-linux-gnu/libfmt.so.9");
  EXPECT_EQ(libraries[1].path, "/a b/torch/lib/libtorch_cpu.so");
  EXPECT_EQ(libraries[2].name, "libgone.so.1");
  EXPECT_EQ(libraries[2].path, "");
  EXPECT_TRUE(ParseLdd("\tstatically linked\n").empty());
}

TEST(Libraries, OfTheHostStayThere) {
  EXPECT_TRUE(IsOfTheSystem("libc.so.6"));
  EXPECT_TRUE(IsOfTheSystem("ld-linux-x86-64.so.2"));
  EXPECT_TRUE(IsOfTheSystem("libcuda.so.1"));  // the driver's
  EXPECT_FALSE(IsOfTheSystem("libstdc++.so.6"));
  EXPECT_FALSE(IsOfTheSystem("libcudart.so.13"));
}

TEST(Libraries, HaveTheirParts) {
  EXPECT_EQ(PartOf("libtorch_cuda.so"), "LibTorch");
  EXPECT_EQ(PartOf("libcudnn_graph.so.9"), "cuDNN");
  EXPECT_EQ(PartOf("libcublasLt.so.13"), "cuBLAS");
  EXPECT_EQ(PartOf("libnccl.so.2"), "NCCL");
  EXPECT_EQ(PartOf("muster-train"), "programs");
  EXPECT_EQ(PartOf("libstdc++.so.6"), "other");
}

}  // namespace
}  // namespace muster::bundle
