// Devices at the end of an attempt, compared with those before it.
#include "worker/ranks/freed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::ranks {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kGib = uint64_t{1} << 30;

Devices Node(const std::vector<uint64_t>& used) {
  Devices devices;
  for (size_t i = 0; i < used.size(); ++i) {
    v1::Device& device = *devices.Add();
    device.set_index(static_cast<uint32_t>(i));
    device.set_uuid("GPU-" + std::to_string(i));
    device.set_memory_used_bytes(used[i]);
  }
  return devices;
}

void Hold(v1::Device& device, uint64_t bytes) {
  device.add_holders()->set_memory_bytes(bytes);
}

TEST(HeldDevices, MemoryOfNobodyIsNamed) {
  EXPECT_THAT(
      HeldDevices(Node({0, kGib}), Node({39 * kGib, kGib})),
      ElementsAre("device 0: 39.0 GiB in use by no process that can be seen, 0.0 GiB before "
                  "the attempt"));
}

TEST(HeldDevices, ALittleIsTheDriversOwn) {
  EXPECT_THAT(HeldDevices(Node({0}), Node({200ull << 20})), IsEmpty());
}

TEST(HeldDevices, WhatOtherJobsHoldDoesNotCount) {
  Devices now = Node({10 * kGib});
  Hold(now[0], 10 * kGib);
  EXPECT_THAT(HeldDevices(Node({0}), now), IsEmpty());
  // Those that were there before and are gone do not make up for ours.
  Devices before = Node({10 * kGib});
  Hold(before[0], 10 * kGib);
  EXPECT_THAT(HeldDevices(before, Node({10 * kGib})).size(), 1u);
}

TEST(HeldDevices, AHolderOfUnknownSizeLeavesItOpen) {
  Devices now = Node({10 * kGib});
  Hold(now[0], 0);
  EXPECT_THAT(HeldDevices(Node({0}), now), IsEmpty());
}

TEST(HeldDevices, DevicesAreFoundByTheirUuid) {
  Devices now = Node({0, 5 * kGib});
  now[0].set_uuid("GPU-1");
  now[1].set_uuid("GPU-0");
  EXPECT_THAT(HeldDevices(Node({5 * kGib, 0}), now), IsEmpty());
  EXPECT_THAT(HeldDevices({}, Node({kGib})), IsEmpty());
}

}  // namespace
}  // namespace muster::ranks
