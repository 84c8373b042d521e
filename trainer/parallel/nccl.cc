#include "trainer/parallel/nccl.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

#include "trainer/config/error.h"

namespace muster::parallel {
namespace {

using std::chrono::steady_clock;

// Waiting asks without a pause first, so that short calls are timed rightly.
constexpr std::chrono::milliseconds kSpin{2};
constexpr std::chrono::microseconds kPause{50};

void CudaCheck(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  throw TrainerError(ExitCode::kCuda, "cuda",
                     fmt::format("{}: {}", what, cudaGetErrorString(error)));
}

ncclDataType_t TypeOf(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return ncclFloat32;
    case at::kDouble:
      return ncclFloat64;
    case at::kHalf:
      return ncclFloat16;
    case at::kBFloat16:
      return ncclBfloat16;
    case at::kInt:
      return ncclInt32;
    case at::kLong:
      return ncclInt64;
    case at::kByte:
      return ncclUint8;
    case at::kChar:
      return ncclInt8;
    default:
      throw std::invalid_argument("NCCL has no such type: view it as bytes");
  }
}

// What a call gets: the tensor's memory, on this group's device.
struct Buffer {
  void* data;
  size_t count;
  ncclDataType_t type;
};

class Nccl : public Communicator {
 public:
  Nccl(int64_t rank, int64_t size, int device, std::chrono::milliseconds timeout)
      : rank_(rank), size_(size), device_(device), timeout_(timeout) {}

  ~Nccl() override {
    if (comm_ == nullptr) return;
    // Destroying a group whose peers have gone would wait for them for ever.
    if (broken_ || !Finalized()) {
      ncclCommAbort(comm_);
    } else {
      ncclCommDestroy(comm_);
    }
  }

  void Connect(const ncclUniqueId& id) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;  // so that a missing peer meets our time-out
    const ncclResult_t result = ncclCommInitRankConfig(&comm_, static_cast<int>(size_), id,
                                                       static_cast<int>(rank_), &config);
    Finish(result, "connect");
    scratch_ = at::zeros({1}, at::TensorOptions()
                                  .dtype(at::kFloat)
                                  .device(at::kCUDA, static_cast<c10::DeviceIndex>(device_)));
  }

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return size_; }

  void AllReduce(at::Tensor tensor, ReduceOp op) override {
    const Buffer buffer = Take(tensor);
    const ncclRedOp_t nccl_op = op == ReduceOp::kMax ? ncclMax : ncclSum;
    Finish(ncclAllReduce(buffer.data, buffer.data, buffer.count, buffer.type, nccl_op, comm_,
                         Stream()),
           "all-reduce");
  }

  void Broadcast(at::Tensor tensor, int64_t root) override {
    const Buffer buffer = Take(tensor);
    Finish(ncclBroadcast(buffer.data, buffer.data, buffer.count, buffer.type,
                         static_cast<int>(root), comm_, Stream()),
           "broadcast");
  }

  void AllGather(at::Tensor output, at::Tensor input) override {
    RequireParts(output, input);
    const Buffer to = Take(output);
    const Buffer from = Take(input);
    Finish(ncclAllGather(from.data, to.data, from.count, from.type, comm_, Stream()), "all-gather");
  }

  void ReduceScatter(at::Tensor output, at::Tensor input) override {
    RequireParts(input, output);
    const Buffer to = Take(output);
    const Buffer from = Take(input);
    Finish(ncclReduceScatter(from.data, to.data, to.count, to.type, ncclSum, comm_, Stream()),
           "reduce-scatter");
  }

  void Send(at::Tensor tensor, int64_t to) override {
    const Buffer buffer = Take(tensor);
    Finish(ncclSend(buffer.data, buffer.count, buffer.type, static_cast<int>(to), comm_, Stream()),
           "send");
  }

  void Receive(at::Tensor tensor, int64_t from) override {
    const Buffer buffer = Take(tensor);
    Finish(
        ncclRecv(buffer.data, buffer.count, buffer.type, static_cast<int>(from), comm_, Stream()),
        "receive");
  }

  void SendReceive(at::Tensor sent, int64_t to, at::Tensor received, int64_t from) override {
    const Buffer out = Take(sent);
    const Buffer in = Take(received);
    // Between start and end the calls only note what is wanted; the end tells what became of it.
    Require(ncclGroupStart(), "send and receive");
    Require(ncclSend(out.data, out.count, out.type, static_cast<int>(to), comm_, Stream()), "send");
    Require(ncclRecv(in.data, in.count, in.type, static_cast<int>(from), comm_, Stream()),
            "receive");
    Finish(ncclGroupEnd(), "send and receive");
  }

  void Barrier() override {
    AllReduce(scratch_, ReduceOp::kMax);
    Synchronize();
  }

  void Synchronize() override {
    RequireWhole();
    const cudaStream_t stream = Stream();
    WaitFor("a collective", [&] {
      const cudaError_t state = cudaStreamQuery(stream);
      if (state != cudaErrorNotReady) CudaCheck(state, "collective");
      return state == cudaSuccess;
    });
  }

 private:
  static cudaStream_t Stream() { return c10::cuda::getCurrentCUDAStream().stream(); }

  // NCCL would read past the elements of a view, and fault on another device's memory.
  Buffer Take(const at::Tensor& tensor) const {
    RequireWhole();
    if (!tensor.is_contiguous()) {
      throw std::invalid_argument("a collective needs contiguous tensors");
    }
    if (!tensor.is_cuda() || tensor.get_device() != device_) {
      throw std::invalid_argument(fmt::format("a tensor is not on CUDA device {}", device_));
    }
    return {tensor.data_ptr(), static_cast<size_t>(tensor.numel()), TypeOf(tensor)};
  }

  void RequireParts(const at::Tensor& whole, const at::Tensor& part) const {
    if (whole.numel() != part.numel() * size_ || whole.scalar_type() != part.scalar_type()) {
      throw std::invalid_argument(
          "the larger tensor must hold one part of the smaller's type a rank");
    }
  }

  void RequireWhole() const {
    if (broken_) throw CommError(Where("a call") + ": the group has been aborted");
  }

  std::string Where(const char* what) const {
    return fmt::format("{} of rank {} of {} over NCCL failed", what, rank_, size_);
  }

  [[noreturn]] void Fail(const std::string& why) {
    broken_ = true;
    throw CommError(why + " (a peer has ended, or did not answer in time)");
  }

  void Require(ncclResult_t result, const char* what) {
    if (result == ncclSuccess || result == ncclInProgress) return;
    const char* detail = comm_ == nullptr ? "" : ncclGetLastError(comm_);
    Fail(fmt::format("{}: {}{}{}", Where(what), ncclGetErrorString(result),
                     *detail == '\0' ? "" : ": ", detail));
  }

  // A call of a group that does not block: waits until it has been taken up.
  void Finish(ncclResult_t result, const char* what) {
    Require(result, what);
    if (result == ncclInProgress) {
      WaitFor(what, [] { return true; });
    }
  }

  // Until NCCL is done with earlier calls and `done` holds; throws on its errors and on time-out.
  template <class Done>
  void WaitFor(const char* what, Done done) {
    const auto start = steady_clock::now();
    while (true) {
      ncclResult_t state = ncclSuccess;
      Require(ncclCommGetAsyncError(comm_, &state), what);
      Require(state, what);
      if (state == ncclSuccess && done()) return;
      const auto waited = steady_clock::now() - start;
      if (waited > timeout_) Fail(Where(what) + ": no end within the time-out");
      if (waited > kSpin) std::this_thread::sleep_for(kPause);
    }
  }

  bool Finalized() {
    try {
      Finish(ncclCommFinalize(comm_), "the end");
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  const int64_t rank_;
  const int64_t size_;
  const int device_;
  const std::chrono::milliseconds timeout_;
  ncclComm_t comm_ = nullptr;
  bool broken_ = false;
  at::Tensor scratch_;  // for barriers
};

// Rank 0's identifier, as all ranks learn it over `control`.
ncclUniqueId AgreeOnId(Communicator& control) {
  ncclUniqueId id{};
  if (control.rank() == 0) {
    const ncclResult_t result = ncclGetUniqueId(&id);
    if (result != ncclSuccess) {
      throw CommError(fmt::format("NCCL can't listen for its ranks: {} (NCCL_DEBUG=INFO says more)",
                                  ncclGetErrorString(result)));
    }
  }
  at::Tensor bytes = at::empty({NCCL_UNIQUE_ID_BYTES}, at::kByte);
  std::memcpy(bytes.data_ptr(), id.internal, NCCL_UNIQUE_ID_BYTES);
  control.Broadcast(bytes, 0);
  std::memcpy(id.internal, bytes.data_ptr(), NCCL_UNIQUE_ID_BYTES);
  return id;
}

}  // namespace

std::unique_ptr<Communicator> ConnectNccl(Communicator& control, int device,
                                          std::chrono::milliseconds timeout) {
  CudaCheck(cudaSetDevice(device), "choose the CUDA device");
  auto nccl = std::make_unique<Nccl>(control.rank(), control.size(), device, timeout);
  nccl->Connect(AgreeOnId(control));
  return nccl;
}

}  // namespace muster::parallel
