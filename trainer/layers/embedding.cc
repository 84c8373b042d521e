#include "trainer/layers/embedding.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros.h>

#include <stdexcept>
#include <string>

#include "trainer/kernels/embedding.h"
#include "trainer/tensor/dtype.h"

namespace muster::layers {
namespace {

// The tokens that this rank has rows for: their places among all tokens, and their rows.
struct Held {
  at::Tensor places;  // undefined: all
  at::Tensor rows;
};

Held HeldBy(const TensorParallel& tensor, const at::Tensor& tokens, int64_t vocab_size) {
  if (tensor.size() == 1) return {{}, tokens};
  const int64_t count = vocab_size / tensor.size();
  const at::Tensor rows = tokens.view({-1}).sub(tensor.rank() * count);
  const at::Tensor places = rows.ge(0).logical_and_(rows.lt(count)).nonzero().view({-1});
  return {places, at::index_select(rows, 0, places)};
}

// The kernel checks against the rows that are here; a token that no rank has must be found too.
void CheckTokens(const at::Tensor& tokens, int64_t vocab_size) {
  const at::Tensor bad = tokens.view({-1});
  const at::Tensor places = bad.lt(0).logical_or_(bad.ge(vocab_size)).nonzero();
  if (places.numel() == 0) return;
  const int64_t place = places[0].item<int64_t>();
  throw std::out_of_range("token " + std::to_string(bad[place].item<int64_t>()) + " at position " +
                          std::to_string(place) + " is outside the vocabulary of " +
                          std::to_string(vocab_size));
}

}  // namespace

at::Tensor Embedding::Forward(Context& ctx, const at::Tensor& tokens_BS) {
  const at::Tensor table = weight_->Get(ctx);
  if (ctx.tensor().size() > 1) CheckTokens(tokens_BS, vocab_size_);
  const Held held = HeldBy(ctx.tensor(), tokens_BS, vocab_size_);
  at::Tensor y_TC = at::empty({held.rows.numel(), table.size(1)}, table.options());
  DispatchFloating(table.scalar_type(), [&]<typename T>(std::type_identity<T>) {
    kernels::EmbeddingForward(y_TC.size(0), y_TC.size(1), table.size(0), Data<int64_t>(held.rows),
                              Data<T>(table), Data<T>(y_TC));
  });
  if (held.places.defined()) {
    y_TC = at::zeros({tokens_BS.numel(), table.size(1)}, table.options())
               .index_copy_(0, held.places, y_TC);
  }
  ctx.Save(tokens_BS);
  return ctx.tensor().Leave(y_TC);
}

void Embedding::Backward(Context& ctx, const at::Tensor& dy_TC) {
  const Held held = HeldBy(ctx.tensor(), ctx.Restore(), vocab_size_);
  at::Tensor dy = ctx.tensor().Enter(dy_TC);
  if (held.places.defined()) dy = at::index_select(dy, 0, held.places);
  const at::ScalarType sum = AccumulateType(dy.scalar_type());
  // A bf16 main gradient is rounded once per micro-batch, not once per token.
  const bool direct = weight_->gradient().scalar_type() == sum;
  const at::Tensor gradient =
      direct ? weight_->gradient() : at::zeros(weight_->gradient().sizes(), sum);
  DispatchFloating(dy.scalar_type(), [&]<typename T>(std::type_identity<T>) {
    kernels::EmbeddingBackward(dy.size(0), dy.size(1), gradient.size(0), Data<int64_t>(held.rows),
                               Data<T>(dy), Data<Accumulate<T>>(gradient));
  });
  if (!direct) weight_->AddGradient(gradient);
}

}  // namespace muster::layers
