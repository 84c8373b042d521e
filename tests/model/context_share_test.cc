#include "trainer/model/context_share.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace muster::model {
namespace {

data::Batch Counting(int64_t positions) {
  data::Batch batch;
  batch.tokens_BS = at::arange(2 * positions, at::kLong).view({2, positions});
  batch.labels_BS = batch.tokens_BS.add(1);
  batch.loss_mask_BS = at::ones({2, positions}, at::kFloat);
  return batch;
}

TEST(ContextShare, AnEarlyAndALateChunkOfEverySequence) {
  const data::Batch share = ContextShare(Counting(8), 1, 2);
  const std::vector<int64_t> tokens = {2, 3, 4, 5, 10, 11, 12, 13}, places = {2, 3, 4, 5};
  EXPECT_TRUE(at::equal(share.tokens_BS, at::tensor(tokens, at::kLong).view({2, 4})));
  EXPECT_TRUE(at::equal(share.labels_BS, share.tokens_BS.add(1)));
  EXPECT_TRUE(at::equal(share.position_ids_BS[1], at::tensor(places, at::kLong)));
  EXPECT_EQ(share.loss_mask_BS.numel(), 8);
  const data::Batch first = ContextShare(Counting(8), 0, 2);
  const std::vector<int64_t> ends = {0, 1, 6, 7};
  EXPECT_TRUE(at::equal(first.position_ids_BS[0], at::tensor(ends, at::kLong)));
}

TEST(ContextShare, GivenPositionsAreKept) {
  data::Batch batch = Counting(8);
  batch.position_ids_BS = batch.tokens_BS.mul(10);
  const data::Batch share = ContextShare(batch, 0, 2);
  EXPECT_TRUE(at::equal(share.position_ids_BS, share.tokens_BS.mul(10)));
}

TEST(ContextShare, WhatCantBeSharedIsRefused) {
  EXPECT_THROW(ContextShare(Counting(6), 0, 2), std::invalid_argument);
  data::Batch batch = Counting(8);
  batch.cu_seqlens = {0, 4, 8, 16};
  EXPECT_THROW(ContextShare(batch, 0, 2), std::invalid_argument);
  EXPECT_TRUE(ContextShare(batch, 0, 1).tokens_BS.is_same(batch.tokens_BS));
}

}  // namespace
}  // namespace muster::model
