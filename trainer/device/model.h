#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/batch.h"
#include "trainer/device/block.h"
#include "trainer/device/head.h"
#include "trainer/device/memory_plan.h"
#include "trainer/device/ops.h"
#include "trainer/device/scaler.h"
#include "trainer/device/shape.h"
#include "trainer/device/weights.h"
#include "trainer/parallel/communicator.h"

namespace muster::device {

// A Llama on a device, in bf16 or FP8: the program of model::Llama over one planned piece of
// memory, with everything fused that Ops can fuse. One micro-batch shape. One thread.
class Model {
 public:
  // Allocates and initialises: the weights of model::Llama for the same seed. Throws
  // std::invalid_argument for sizes that the device can't do. `amax_group` as model::Llama's.
  Model(std::unique_ptr<Ops> ops, const Shape& shape, const StateTypes& types,
        parallel::Communicator* amax_group);

  // Gradients and sums become 0.
  void BeginIteration();
  // Forward and backward of the SUM of token losses; adds to gradients and sums. Returns when all
  // is enqueued. Throws std::out_of_range for tokens or labels outside the vocabulary.
  void ForwardBackward(const data::Batch& batch);
  // Forward only, into the sums; no change of FP8 state.
  void Evaluate(const data::Batch& batch);

  // Of all micro-batches since BeginSums: loss and unmasked tokens. Waits for the device.
  struct Sums {
    double loss, tokens;
  };
  void BeginSums();
  Sums TakeSums();

  Ops& ops() { return *ops_; }
  const Shape& shape() const { return shape_; }
  Weights& weights() const { return *weights_; }
  Scaler* scaler() { return scaler_.get(); }
  int64_t memory_bytes() const { return memory_bytes_; }

 private:
  struct Inputs {
    int64_t* tokens = nullptr;
    int64_t* labels = nullptr;
    float* mask = nullptr;
    int32_t *group_tokens = nullptr, *group_starts = nullptr, *group_positions = nullptr;
    int64_t groups = 0;
  };

  void MakeLayers();
  void MakeMemory();
  void MakeAngles();
  void Load(const data::Batch& batch);
  void Forward(Pass pass);
  // All of a training micro-batch but its inputs and the embedding's gradient, whose work varies.
  void Train(Pass pass);

  std::unique_ptr<Ops> ops_;
  const Shape shape_;
  std::unique_ptr<Scaler> scaler_;
  std::unique_ptr<Weights> weights_;
  Workspace workspace_;
  Saved shared_;  // of the layers that are recomputed
  std::vector<std::unique_ptr<Block>> blocks_;
  std::unique_ptr<Head> head_;
  Inputs inputs_;
  Pass next_pass_ = Pass::kFirst;
  double* sums_ = nullptr;
  int64_t memory_bytes_ = 0;
};

}  // namespace muster::device
