#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trainer/config/model_config.h"
#include "trainer/device/memory_plan.h"
#include "trainer/device/ops.h"
#include "trainer/fp8/recipe.h"
#include "trainer/parallel/communicator.h"

namespace muster::device {

// A matrix as products take it: in FP8 its codes, row by row and transposed; in bf16 both are the
// matrix itself.
struct Operand {
  const void* rows = nullptr;
  const void* columns = nullptr;
  const float* scale_inv = nullptr;
};

// The scales of the FP8 linears on the device: fp8::Recipe for the planned model, with the same
// state. Delayed scaling casts a tensor in the pass that makes it. Tensorwise scaling needs the
// tensor's amax first, so the pass runs twice: once for the amax alone, once for the codes.
class Scaler {
 public:
  // `group` (null: this rank alone) must outlive the scaler.
  Scaler(Ops* ops, const config::Fp8Config& config, std::vector<std::string> linears,
         parallel::Communicator* group);

  void Plan(Planner& planner);
  // The initial state, once the memory is there.
  void Reset();

  // An operand of linear `linear`, in `codes` and `transposed` (either may be null). `produce` is
  // called with where its result goes, and whether that is a second pass over the same data.
  // `record`: this use counts for later scales.
  template <typename Produce>
  Operand Make(int64_t linear, fp8::Role role, uint8_t* codes, uint8_t* transposed, bool record,
               const Produce& produce) {
    kernels::Fp8Output out = Output(linear, role, codes, transposed, record);
    if (tensorwise_) {
      produce(out.OnlyAmax(current_amax_), false);
      ops_->TakeCurrentScale(out.format, current_amax_, CurrentScale(linear, role));
      produce(out, true);
    } else {
      produce(out, false);
    }
    return {codes, transposed, out.scale_inv};
  }
  // The input of `linear` once more, in the backward of the micro-batch whose forward made it: with
  // the same scale.
  kernels::Fp8Output InputAgain(int64_t linear, uint8_t* codes, uint8_t* transposed) const;
  Operand InputOperand(int64_t linear, const uint8_t* codes, const uint8_t* transposed) const {
    return {codes, transposed, ScaleInverse(linear, fp8::Role::kInput)};
  }
  const float* ScaleInverse(int64_t linear, fp8::Role role) const;

  // Whether the updates wait for other ranks, by the host.
  bool UsesHost() const { return !tensorwise_ && group_ != nullptr && group_->size() > 1; }
  // After a recorded forward (backward) through all linears.
  void AfterForward();
  void AfterBackward();

  // fp8::Recipe::State on the host: a copy, and back.
  std::vector<std::pair<std::string, at::Tensor>> Fetch();
  void Store(const std::vector<std::pair<std::string, at::Tensor>>& state);

 private:
  static constexpr int64_t kForwardSlots = 3, kBackwardSlots = 2;
  // Each scale_inv has 16 bytes of its own, which cuBLAS wants.
  static constexpr int64_t kSlotFloats = fp8::cuda::kScaleAlignment / sizeof(float);

  // One direction of all linears.
  struct Direction {
    int64_t slots;             // per linear
    float* scale = nullptr;    // [linears * slots]
    float* history = nullptr;  // [H, linears * slots]; row 0 collects
    float* reduced = nullptr;  // row 0 over all ranks
    float* used = nullptr;     // the scales of the latest forward, before their update
  };

  int64_t Count(const Direction& direction) const {
    return static_cast<int64_t>(linears_.size()) * direction.slots;
  }
  float* CurrentScale(int64_t linear, fp8::Role role) const {
    return current_scales_ + 3 * linear + static_cast<int64_t>(role);
  }
  kernels::Fp8Output Output(int64_t linear, fp8::Role role, uint8_t* codes, uint8_t* transposed,
                            bool record) const;
  void Update(Direction& direction, fp8::Format format);
  // Host copies of a direction, in the order of the device.
  std::vector<std::pair<std::string, at::Tensor>> Views(const Direction& direction,
                                                        const at::Tensor& scale,
                                                        const at::Tensor& history,
                                                        const char* suffix) const;

  Ops* const ops_;
  const config::Fp8Config config_;
  const std::vector<std::string> linears_;
  parallel::Communicator* const group_;
  const bool tensorwise_;
  Direction forward_{kForwardSlots}, backward_{kBackwardSlots};
  float* scale_inverses_ = nullptr;  // [linears * 3], kSlotFloats apart
  float* current_amax_ = nullptr;    // tensorwise: 0 between uses
  float* current_scales_ = nullptr;  // tensorwise: [linears * 3]
};

}  // namespace muster::device
