#include "trainer/commtest/group.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "trainer/config/error.h"
#include "trainer/parallel/gloo.h"
#include "trainer/parallel/single_rank.h"
#ifdef MUSTER_HAS_NCCL
#include <cuda_runtime_api.h>

#include "trainer/parallel/nccl.h"
#endif

namespace muster::commtest {
namespace {

constexpr int64_t kTextBytes = 256;

int DeviceCount() {
#ifdef MUSTER_HAS_NCCL
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
#else
  return 0;
#endif
}

std::unique_ptr<parallel::Communicator> ConnectControl(const Options& options,
                                                       const config::RankEnvironment& env) {
  if (env.world_size == 1) return std::make_unique<parallel::SingleRank>();
  parallel::GlooOptions gloo;
  gloo.master_addr = env.master_addr;
  gloo.master_port = env.master_port;
  gloo.rank = env.rank;
  gloo.world_size = env.world_size;
  gloo.timeout = options.timeout;
  gloo.external_store = env.agent_hosts_store;
  gloo.run_name = fmt::format("commtest_{}", env.restart_count);
  gloo.interface = env.socket_interface;
  return parallel::ConnectGloo(gloo);
}

}  // namespace

std::string BackendName(const Options& options) {
  const bool cuda =
      options.backend == Backend::kNccl || (options.backend == Backend::kAuto && DeviceCount() > 0);
  return cuda ? "nccl" : "gloo";
}

Group Connect(const Options& options, const config::RankEnvironment& env) {
  const bool cuda = BackendName(options) == "nccl";
  if (cuda && env.local_rank >= DeviceCount()) {
    throw ConfigError(fmt::format(
        "--backend nccl: local rank {} has no CUDA device ({} are to be seen here): start no more "
        "ranks a host than it has devices, or use --backend gloo",
        env.local_rank, DeviceCount()));
  }
  auto control = ConnectControl(options, env);
#ifdef MUSTER_HAS_NCCL
  if (cuda) {
    const auto device = static_cast<c10::DeviceIndex>(env.local_rank);
    auto data = parallel::ConnectNccl(*control, device, options.timeout);
    return Group(std::move(control), std::move(data), at::Device(at::kCUDA, device));
  }
#endif
  return Group(std::move(control), nullptr, at::Device(at::kCPU));
}

Group::Group(std::unique_ptr<parallel::Communicator> control,
             std::unique_ptr<parallel::Communicator> data, at::Device device)
    : control_(std::move(control)), data_(std::move(data)), device_(device) {}

at::Tensor Group::Allocate(int64_t count, Type type) const {
  return at::zeros({count}, at::TensorOptions().dtype(ToTorch(type)).device(device_));
}

void Group::FillWith(at::Tensor& tensor, const Content& content) const {
  if (tensor.is_cpu()) return Fill(tensor, content);
  at::Tensor host = at::empty({tensor.numel()}, tensor.scalar_type());
  Fill(host, content);
  tensor.copy_(host);
}

int64_t Group::WrongIn(const at::Tensor& tensor, const Content& content) const {
  return CountWrong(tensor.is_cpu() ? tensor : tensor.cpu(), content);
}

void Group::Reduce(std::vector<double>& values, parallel::ReduceOp op) {
  if (values.empty()) return;
  at::Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, at::kDouble);
  std::copy(values.begin(), values.end(), tensor.data_ptr<double>());
  control_->AllReduce(tensor, op);
  const double* data = tensor.data_ptr<double>();
  std::copy(data, data + values.size(), values.begin());
}

std::vector<std::string> Group::Gather(const std::string& text) {
  const size_t length = std::min<size_t>(text.size(), kTextBytes - 1);
  at::Tensor mine = at::zeros({kTextBytes}, at::kByte);
  std::memcpy(mine.data_ptr(), text.data(), length);
  at::Tensor all = at::zeros({kTextBytes * size()}, at::kByte);
  control_->AllGather(all, mine);
  std::vector<std::string> texts;
  for (int64_t rank = 0; rank < size(); ++rank) {
    texts.emplace_back(reinterpret_cast<const char*>(all.data_ptr<uint8_t>()) + rank * kTextBytes);
  }
  return texts;
}

}  // namespace muster::commtest
