#include "trainer/kernels/cuda/attention.h"

#include <cudnn_frontend.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trainer/kernels/cuda/fill_normal.h"
#include "trainer/tensor/cuda_check.h"
#include "trainer/tensor/cuda_stopwatch.h"

// The one unit that includes cudnn-frontend: it takes minutes to compile.

namespace muster::kernels::cuda {
namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

// Names of the graphs' tensors.
enum Uid : int64_t { kQ = 1, kK, kV, kOut, kLogsumexp, kDout, kDq, kDk, kDv };
using Pointers = std::unordered_map<int64_t, void*>;

constexpr int64_t kAlignment = 256;
constexpr int kTimedRuns = 5;

int64_t Align(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void CheckFrontend(fe::error_t error, const AttentionSpec& spec, const char* file, int line,
                   const char* expression) {
  if (error.is_good()) return;
  throw CudaError(
      CallFailure(file, line, expression, error.get_message() + " (" + ToString(spec) + ")"));
}
#define CHECK_FRONTEND(spec, expression) \
  CheckFrontend((expression), spec, __FILE__, __LINE__, #expression)

void CheckCudnn(cudnnStatus_t status, const char* file, int line, const char* expression) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw CudaError(CallFailure(file, line, expression, cudnnGetErrorString(status)));
}
#define CHECK_CUDNN(expression) CheckCudnn((expression), __FILE__, __LINE__, #expression)

// Where the heads of each tensor lie, in elements.
struct Layout {
  explicit Layout(const AttentionSpec& s)
      : q_dims{s.batch, s.heads, s.positions, s.head_dim},
        kv_dims{s.batch, s.kv_heads, s.positions, s.head_dim},
        packed{s.positions * s.RowElements(), s.head_dim, s.RowElements(), 1},
        out{s.positions * s.heads * s.head_dim, s.head_dim, s.heads * s.head_dim, 1},
        lse_dims{s.batch, s.heads, s.positions, 1},
        lse{s.heads * s.positions, s.positions, 1, 1},
        k_offset(s.heads * s.head_dim),
        v_offset((s.heads + s.kv_heads) * s.head_dim) {}

  std::vector<int64_t> q_dims, kv_dims;
  std::vector<int64_t> packed, out;  // strides
  std::vector<int64_t> lse_dims, lse;
  int64_t k_offset, v_offset;
};

// One direction: a graph with all plans that cuDNN offers for it, of which one is used.
class Direction {
 public:
  Direction(const AttentionSpec& spec, std::unique_ptr<fe::graph::Graph> graph,
            cudnnHandle_t handle)
      : spec_(spec), graph_(std::move(graph)) {
    CHECK_FRONTEND(spec_, graph_->validate());
    CHECK_FRONTEND(spec_, graph_->build_operation_graph(handle));
    CHECK_FRONTEND(spec_, graph_->create_execution_plans({fe::HeurMode_t::A}));
    CHECK_FRONTEND(spec_, graph_->check_support(handle));
  }

  // Takes the fastest plan whose workspace fits; the first that builds when there is none.
  void Choose(cudnnHandle_t handle, const Pointers& pointers, std::span<std::byte> workspace,
              cudaStream_t stream) {
    float best = std::numeric_limits<float>::infinity();
    std::string reason = "cuDNN offers none";
    for (int64_t i = 0; i < graph_->get_execution_plan_count(); ++i) {
      if (index_ >= 0 && workspace.empty()) break;
      fe::error_t built = graph_->build_plan_at_index(i);
      if (built.is_bad()) {
        reason = built.get_message();
        continue;
      }
      const int64_t bytes = graph_->get_workspace_size_plan_at_index(i);
      float milliseconds = std::numeric_limits<float>::infinity();
      if (bytes <= static_cast<int64_t>(workspace.size())) {
        milliseconds = Time(handle, pointers, workspace.data(), i, stream);
      }
      if (index_ >= 0 && !(milliseconds < best)) continue;
      best = milliseconds;
      index_ = i;
      workspace_bytes_ = bytes;
      milliseconds_ = std::isfinite(milliseconds) ? milliseconds : 0;
    }
    if (index_ < 0) throw CudaError("no plan for " + ToString(spec_) + ": " + reason);
  }

  void Run(cudnnHandle_t handle, Pointers& pointers, void* workspace) const {
    CHECK_FRONTEND(spec_, graph_->execute_plan_at_index(handle, pointers, workspace, index_));
  }

  int64_t workspace_bytes() const { return workspace_bytes_; }

  std::string Describe() const {
    std::string name;
    CHECK_FRONTEND(spec_, graph_->get_plan_name_at_index(index_, name));
    name += " (" + std::to_string(index_ + 1) + " of " +
            std::to_string(graph_->get_execution_plan_count());
    if (milliseconds_ > 0) name += ", " + std::to_string(milliseconds_) + " ms";
    return name + ")";
  }

 private:
  // The median of a few runs in milliseconds; infinite when the plan does not run.
  float Time(cudnnHandle_t handle, Pointers pointers, void* workspace, int64_t index,
             cudaStream_t stream) const {
    std::vector<float> times;
    CudaStopwatch stopwatch;
    for (int i = 0; i <= kTimedRuns; ++i) {
      stopwatch.Start(stream);
      if (graph_->execute_plan_at_index(handle, pointers, workspace, index).is_bad()) {
        return std::numeric_limits<float>::infinity();
      }
      const float milliseconds = stopwatch.Stop(stream);
      if (i > 0) times.push_back(milliseconds);
    }
    std::nth_element(times.begin(), times.begin() + kTimedRuns / 2, times.end());
    return times[kTimedRuns / 2];
  }

  AttentionSpec spec_;
  std::unique_ptr<fe::graph::Graph> graph_;
  int64_t index_ = -1;
  int64_t workspace_bytes_ = 0;
  float milliseconds_ = 0;
};

std::unique_ptr<fe::graph::Graph> NewGraph() {
  auto graph = std::make_unique<fe::graph::Graph>();
  graph->set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  return graph;
}

Tensor Input(fe::graph::Graph& graph, Uid uid, const char* name, const std::vector<int64_t>& dims,
             const std::vector<int64_t>& strides, fe::DataType_t type = fe::DataType_t::BFLOAT16) {
  return graph.tensor(fe::graph::Tensor_attributes()
                          .set_name(name)
                          .set_uid(uid)
                          .set_dim(dims)
                          .set_stride(strides)
                          .set_data_type(type));
}

void Output(const Tensor& tensor, Uid uid, const std::vector<int64_t>& dims,
            const std::vector<int64_t>& strides, fe::DataType_t type = fe::DataType_t::BFLOAT16) {
  tensor->set_output(true).set_uid(uid).set_dim(dims).set_stride(strides).set_data_type(type);
}

float Scale(const AttentionSpec& spec) {
  return 1.0f / std::sqrt(static_cast<float>(spec.head_dim));
}

std::unique_ptr<fe::graph::Graph> ForwardGraph(const AttentionSpec& spec) {
  const Layout layout(spec);
  auto graph = NewGraph();
  const Tensor q = Input(*graph, kQ, "q", layout.q_dims, layout.packed);
  const Tensor k = Input(*graph, kK, "k", layout.kv_dims, layout.packed);
  const Tensor v = Input(*graph, kV, "v", layout.kv_dims, layout.packed);
  const auto [out, logsumexp] =
      graph->sdpa(q, k, v,
                  fe::graph::SDPA_attributes()
                      .set_name("attention")
                      .set_generate_stats(true)
                      .set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
                      .set_diagonal_band_right_bound(0)
                      .set_attn_scale(Scale(spec)));
  Output(out, kOut, layout.q_dims, layout.out);
  Output(logsumexp, kLogsumexp, layout.lse_dims, layout.lse, fe::DataType_t::FLOAT);
  return graph;
}

std::unique_ptr<fe::graph::Graph> BackwardGraph(const AttentionSpec& spec) {
  const Layout layout(spec);
  auto graph = NewGraph();
  const Tensor q = Input(*graph, kQ, "q", layout.q_dims, layout.packed);
  const Tensor k = Input(*graph, kK, "k", layout.kv_dims, layout.packed);
  const Tensor v = Input(*graph, kV, "v", layout.kv_dims, layout.packed);
  const Tensor out = Input(*graph, kOut, "out", layout.q_dims, layout.out);
  const Tensor dout = Input(*graph, kDout, "dout", layout.q_dims, layout.out);
  const Tensor logsumexp =
      Input(*graph, kLogsumexp, "logsumexp", layout.lse_dims, layout.lse, fe::DataType_t::FLOAT);
  const auto [dq, dk, dv] =
      graph->sdpa_backward(q, k, v, out, dout, logsumexp,
                           fe::graph::SDPA_backward_attributes()
                               .set_name("attention_backward")
                               .set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
                               .set_diagonal_band_right_bound(0)
                               .set_attn_scale(Scale(spec))
                               .set_deterministic_algorithm(spec.deterministic));
  Output(dq, kDq, layout.q_dims, layout.packed);
  Output(dk, kDk, layout.kv_dims, layout.packed);
  Output(dv, kDv, layout.kv_dims, layout.packed);
  return graph;
}

// cuDNN's maps hold void*; inputs are not written.
template <typename T>
void* Address(const T* pointer, int64_t offset = 0) {
  return const_cast<T*>(pointer + offset);
}

class CudnnPlan : public AttentionPlan {
 public:
  CudnnPlan(const AttentionSpec& spec, cudnnHandle_t handle)
      : layout_(spec),
        handle_(handle),
        forward_(spec, ForwardGraph(spec), handle),
        backward_(spec, BackwardGraph(spec), handle) {}

  void Choose(const AttentionSpec& spec, std::span<std::byte> scratch, cudaStream_t stream) {
    if (scratch.empty()) {
      forward_.Choose(handle_, {}, {}, stream);
      backward_.Choose(handle_, {}, {}, stream);
      return;
    }
    const int64_t rows = spec.batch * spec.positions, width = spec.heads * spec.head_dim;
    std::byte* next = scratch.data();
    const auto take = [&next](int64_t bytes) { return std::exchange(next, next + Align(bytes)); };
    auto* qkv = reinterpret_cast<Bfloat16*>(take(rows * spec.RowElements() * 2));
    auto* dqkv = reinterpret_cast<Bfloat16*>(take(rows * spec.RowElements() * 2));
    auto* out = reinterpret_cast<Bfloat16*>(take(rows * width * 2));
    auto* dout = reinterpret_cast<Bfloat16*>(take(rows * width * 2));
    auto* logsumexp = reinterpret_cast<float*>(take(rows * spec.heads * 4));
    const std::span<std::byte> workspace(next, scratch.data() + scratch.size());
    FillNormal(qkv, rows * spec.RowElements(), 1, 1, stream);
    FillNormal(dout, rows * width, 1, 2, stream);
    CHECK_CUDNN(cudnnSetStream(handle_, stream));
    forward_.Choose(handle_, ForwardPointers(qkv, out, logsumexp), workspace, stream);
    backward_.Choose(handle_, BackwardPointers(qkv, out, logsumexp, dout, dqkv), workspace, stream);
  }

  int64_t WorkspaceBytes() const override {
    return std::max(forward_.workspace_bytes(), backward_.workspace_bytes());
  }

  void Forward(const Bfloat16* qkv, Bfloat16* out, float* logsumexp, void* workspace,
               cudaStream_t stream) const override {
    CHECK_CUDNN(cudnnSetStream(handle_, stream));
    Pointers pointers = ForwardPointers(qkv, out, logsumexp);
    forward_.Run(handle_, pointers, workspace);
  }

  void Backward(const Bfloat16* qkv, const Bfloat16* out, const float* logsumexp,
                const Bfloat16* dout, Bfloat16* dqkv, void* workspace,
                cudaStream_t stream) const override {
    CHECK_CUDNN(cudnnSetStream(handle_, stream));
    Pointers pointers = BackwardPointers(qkv, out, logsumexp, dout, dqkv);
    backward_.Run(handle_, pointers, workspace);
  }

  std::string Describe() const override {
    return "forward " + forward_.Describe() + ", backward " + backward_.Describe();
  }

 private:
  Pointers ForwardPointers(const Bfloat16* qkv, Bfloat16* out, float* logsumexp) const {
    return {{kQ, Address(qkv)},
            {kK, Address(qkv, layout_.k_offset)},
            {kV, Address(qkv, layout_.v_offset)},
            {kOut, out},
            {kLogsumexp, logsumexp}};
  }

  Pointers BackwardPointers(const Bfloat16* qkv, const Bfloat16* out, const float* logsumexp,
                            const Bfloat16* dout, Bfloat16* dqkv) const {
    return {{kQ, Address(qkv)},
            {kK, Address(qkv, layout_.k_offset)},
            {kV, Address(qkv, layout_.v_offset)},
            {kOut, Address(out)},
            {kLogsumexp, Address(logsumexp)},
            {kDout, Address(dout)},
            {kDq, dqkv},
            {kDk, dqkv + layout_.k_offset},
            {kDv, dqkv + layout_.v_offset}};
  }

  Layout layout_;
  cudnnHandle_t handle_;
  Direction forward_, backward_;
};

}  // namespace

std::string ToString(const AttentionSpec& spec) {
  return std::string(spec.deterministic ? "deterministic " : "") + "causal attention, batch " +
         std::to_string(spec.batch) + ", " + std::to_string(spec.positions) + " positions, " +
         std::to_string(spec.heads) + ":" + std::to_string(spec.kv_heads) + " heads of " +
         std::to_string(spec.head_dim);
}

struct Attention::Handle {
  Handle() { CHECK_CUDNN(cudnnCreate(&cudnn)); }
  ~Handle() { cudnnDestroy(cudnn); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  cudnnHandle_t cudnn = nullptr;
};

Attention::Attention() : handle_(std::make_unique<Handle>()) {}
Attention::~Attention() = default;

const AttentionPlan& Attention::Plan(const AttentionSpec& spec, std::span<std::byte> scratch,
                                     cudaStream_t stream) {
  std::unique_ptr<AttentionPlan>& plan = plans_[spec];
  if (plan == nullptr) {
    const int64_t needed = ScratchBytes(spec, 0);
    if (!scratch.empty() && static_cast<int64_t>(scratch.size()) < needed) {
      throw CudaError(ToString(spec) + ": scratch of " + std::to_string(scratch.size()) +
                      " bytes, needs " + std::to_string(needed) + " and the plans' workspace");
    }
    auto made = std::make_unique<CudnnPlan>(spec, handle_->cudnn);
    made->Choose(spec, scratch, stream);
    plan = std::move(made);
  }
  return *plan;
}

int64_t Attention::ScratchBytes(const AttentionSpec& spec, int64_t workspace_bytes) {
  const int64_t rows = spec.batch * spec.positions, width = spec.heads * spec.head_dim;
  return 2 * Align(rows * spec.RowElements() * 2) + 2 * Align(rows * width * 2) +
         Align(rows * spec.heads * 4) + Align(workspace_bytes);
}

}  // namespace muster::kernels::cuda
