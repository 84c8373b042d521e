#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/device/memory_plan.h"
#include "trainer/device/ops.h"
#include "trainer/device/scaler.h"
#include "trainer/device/shape.h"
#include "trainer/model/parameter_spec.h"

namespace muster::device {

// A parameter on the device: fp32 master, main gradient (fp32; bf16 if wished, for FP8 linears) and
// moments (fp32 or bf16), and the copy
// that products take: FP8 with its transpose, or bf16. The rows of the qkv weight are packed
// (qkv_packing.h); the host sees them grouped.
struct Weight {
  model::ParameterSpec spec;
  int64_t rows = 1, columns = 0;
  int64_t linear = -1;  // its number among the FP8 linears; -1: used in bf16
  bool is_qkv = false;

  float* master = nullptr;
  float* grad = nullptr;  // null: it is bf16
  Bfloat16* bf16_grad = nullptr;
  void* exp_avg = nullptr;
  void* exp_avg_sq = nullptr;
  Bfloat16* copy = nullptr;
  uint8_t* codes = nullptr;
  uint8_t* transposed = nullptr;
  Operand operand;

  int64_t count() const { return rows * columns; }
};

// All parameters of the model, in the order of model::ParameterSpecs.
class Weights {
 public:
  // What of a weight is meant.
  enum class Part { kValue, kGradient, kExpAvg, kExpAvgSq };

  // `scaler` is null without FP8.
  Weights(Ops* ops, Scaler* scaler, const Shape& shape, const StateTypes& types);

  void Plan(Planner& planner);
  // Once the memory is there.
  void Bind();
  // The values of model::FillNormal.
  void Initialize();
  // Makes the copies that products take.
  void Convert();

  std::vector<Weight>& all() { return weights_; }
  Weight& Find(const std::string& name);
  static std::vector<std::string> LinearNames(const config::ModelConfig& config);

  // A part in fp32, row-major, as the host has it. Download waits for the device.
  void Download(const Weight& weight, Part part, float* to);
  void Upload(const Weight& weight, Part part, const float* from);

  // Two pieces of memory with all gradients, each gradient at a multiple of 256 bytes.
  template <typename G>
  struct Gradients {
    G* data = nullptr;
    int64_t count = 0;
  };
  const Gradients<float>& gradients() const { return gradients_; }
  const Gradients<Bfloat16>& bf16_gradients() const { return bf16_gradients_; }
  const StateTypes& types() const { return types_; }

 private:
  // Calls move(first row on the device, first row on the host, rows) so that each row moves once.
  template <typename Move>
  void ForRows(const Weight& weight, const Move& move) const;
  std::byte* Address(const Weight& weight, Part part) const;
  bool IsBf16(const Weight& weight, Part part) const {
    if (part == Part::kGradient) return weight.bf16_grad != nullptr;
    return types_.bf16_moments && part != Part::kValue;
  }
  bool HasBf16Gradient(const Weight& weight) const {
    return types_.bf16_gradients && weight.linear >= 0;
  }

  Ops* const ops_;
  Scaler* const scaler_;
  const Shape shape_;
  const StateTypes types_;
  std::vector<Weight> weights_;
  Gradients<float> gradients_;
  Gradients<Bfloat16> bf16_gradients_;
};

}  // namespace muster::device
