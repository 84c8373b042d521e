#include "trainer/device/weights.h"

#include <stdexcept>
#include <utility>

#include "trainer/kernels/qkv_packing.h"
#include "trainer/model/init.h"

namespace muster::device {
namespace {

// Elements that a gradient of `count` takes up, so that the next one starts at 256 bytes.
int64_t Room(int64_t count) {
  constexpr int64_t kStep = 128;
  return (count + kStep - 1) / kStep * kStep;
}

bool EndsWith(const std::string& text, const char* end) {
  const std::string suffix(end);
  return text.size() >= suffix.size() &&
         text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

}  // namespace

std::vector<std::string> Weights::LinearNames(const config::ModelConfig& config) {
  std::vector<std::string> names;
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    for (const char* linear : {"self_attention.linear_qkv", "self_attention.linear_proj",
                               "mlp.linear_fc1", "mlp.linear_fc2"}) {
      names.push_back(model::LayerPrefix(layer) + linear);
    }
  }
  return names;
}

Weights::Weights(Ops* ops, Scaler* scaler, const Shape& shape, const StateTypes& types)
    : ops_(ops), scaler_(scaler), shape_(shape), types_(types) {
  int64_t linear = 0;
  for (const model::ParameterSpec& spec : model::ParameterSpecs(shape.model)) {
    Weight weight;
    weight.spec = spec;
    weight.columns = spec.shape.back();
    weight.rows = spec.shape.size() > 1 ? spec.shape.front() : 1;
    const bool is_linear = spec.shape.size() > 1 && spec.name != model::kEmbeddingName &&
                           spec.name != model::kHeadName;
    if (is_linear && scaler_ != nullptr) weight.linear = linear++;
    weight.is_qkv = EndsWith(spec.name, "linear_qkv.weight");
    weights_.push_back(std::move(weight));
  }
}

void Weights::Plan(Planner& planner) {
  for (Weight& weight : weights_) {
    const std::string& name = weight.spec.name;
    const int64_t count = weight.count();
    planner.Want(&weight.master, name + ".master", count);
    for (void** moment : {&weight.exp_avg, &weight.exp_avg_sq}) {
      if (types_.bf16_moments) {
        planner.Want(reinterpret_cast<Bfloat16**>(moment), name + ".moment", count);
      } else {
        planner.Want(reinterpret_cast<float**>(moment), name + ".moment", count);
      }
    }
    if (weight.linear >= 0) {
      planner.Want(&weight.codes, name + ".fp8", count);
      planner.Want(&weight.transposed, name + ".fp8_transposed", count);
    } else {
      planner.Want(&weight.copy, name + ".bf16", count);
    }
    (HasBf16Gradient(weight) ? bf16_gradients_.count : gradients_.count) += Room(count);
  }
  planner.Want(&gradients_.data, "gradients", gradients_.count);
  planner.Want(&bf16_gradients_.data, "bf16_gradients", bf16_gradients_.count);
}

void Weights::Bind() {
  float* next = gradients_.data;
  Bfloat16* bf16_next = bf16_gradients_.data;
  for (Weight& weight : weights_) {
    if (HasBf16Gradient(weight)) {
      weight.bf16_grad = std::exchange(bf16_next, bf16_next + Room(weight.count()));
    } else {
      weight.grad = std::exchange(next, next + Room(weight.count()));
    }
    weight.operand = {weight.copy, weight.copy, nullptr};
    if (weight.linear >= 0) {
      weight.operand = {weight.codes, weight.transposed,
                        scaler_->ScaleInverse(weight.linear, fp8::Role::kWeight)};
    }
  }
}

Weight& Weights::Find(const std::string& name) {
  for (Weight& weight : weights_) {
    if (weight.spec.name == name) return weight;
  }
  throw std::out_of_range("no parameter " + name);
}

template <typename Move>
void Weights::ForRows(const Weight& weight, const Move& move) const {
  if (!weight.is_qkv) return move(0, 0, weight.rows);
  const kernels::QkvShape qkv = shape_.Qkv();
  for (int64_t row = 0; row < weight.rows; row += qkv.head_dim) {
    move(kernels::PackedQkvRow(qkv, row), row, qkv.head_dim);
  }
}

void Weights::Initialize() {
  for (const Weight& weight : weights_) {
    if (weight.spec.init_std == 0) {
      ops_->Fill(weight.count(), static_cast<float>(weight.spec.init_value), weight.master);
      continue;
    }
    const uint64_t key = model::InitialKey(shape_.model.seed, weight.spec.name);
    ForRows(weight, [&](int64_t device, int64_t host, int64_t rows) {
      ops_->FillInitial(key, weight.spec.init_std, host * weight.columns, rows * weight.columns,
                        weight.master + device * weight.columns);
    });
  }
}

void Weights::Convert() {
  for (const Weight& weight : weights_) {
    if (weight.linear < 0) {
      ops_->CastToBf16(weight.count(), weight.master, weight.copy);
      continue;
    }
    scaler_->Make(weight.linear, fp8::Role::kWeight, weight.codes, weight.transposed, true,
                  [&](const kernels::Fp8Output& out, bool) {
                    ops_->CastToFp8(weight.rows, weight.columns, weight.master, out);
                  });
  }
}

std::byte* Weights::Address(const Weight& weight, Part part) const {
  const auto address = [&]() -> void* {
    switch (part) {
      case Part::kValue:
        return weight.master;
      case Part::kGradient:
        return weight.bf16_grad != nullptr ? static_cast<void*>(weight.bf16_grad) : weight.grad;
      case Part::kExpAvg:
        return weight.exp_avg;
      case Part::kExpAvgSq:
        break;
    }
    return weight.exp_avg_sq;
  };
  return static_cast<std::byte*>(address());
}

void Weights::Download(const Weight& weight, Part part, float* to) {
  std::byte* const from = Address(weight, part);
  std::vector<Bfloat16> rounded;
  ForRows(weight, [&](int64_t device, int64_t host, int64_t rows) {
    const int64_t count = rows * weight.columns;
    float* const row = to + host * weight.columns;
    if (!IsBf16(weight, part)) {
      return ops_->Download(row, from + device * weight.columns * 4, count * 4);
    }
    rounded.resize(static_cast<size_t>(count));
    ops_->Download(rounded.data(), from + device * weight.columns * 2, count * 2);
    for (int64_t i = 0; i < count; ++i) row[i] = float(rounded[static_cast<size_t>(i)]);
  });
}

void Weights::Upload(const Weight& weight, Part part, const float* from) {
  std::byte* const to = Address(weight, part);
  std::vector<Bfloat16> rounded;
  ForRows(weight, [&](int64_t device, int64_t host, int64_t rows) {
    const int64_t count = rows * weight.columns;
    const float* const row = from + host * weight.columns;
    if (!IsBf16(weight, part)) {
      return ops_->Upload(to + device * weight.columns * 4, row, count * 4);
    }
    rounded.clear();
    for (int64_t i = 0; i < count; ++i) rounded.push_back(Bfloat16(row[i]));
    ops_->Upload(to + device * weight.columns * 2, rounded.data(), count * 2);
  });
}

}  // namespace muster::device
