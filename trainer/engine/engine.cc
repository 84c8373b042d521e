#include "trainer/engine/engine.h"

#include "trainer/config/error.h"
#ifdef MUSTER_HAS_CUDA
#include "trainer/device/cuda_ops.h"
#include "trainer/device/energy.h"
#include "trainer/engine/device_engine.h"
#endif

namespace muster::engine {

std::unique_ptr<Engine> MakeEngine(const config::TrainConfig& config,
                                   [[maybe_unused]] int64_t local_rank,
                                   const parallel::Groups& groups) {
  if (config.device == "cpu") return MakeCpuEngine(config, groups);
#ifdef MUSTER_HAS_CUDA
  device::CudaOptions options;
  options.ordinal = static_cast<int>(local_rank % device::GpuCount());
  options.deterministic = config.deterministic_mode;
  options.gemm_cache = config.gemm_tuning_cache;
  auto meter = std::make_shared<device::EnergyMeter>(options.ordinal);
  return MakeDeviceEngine(config, device::MakeCudaOps(options), groups,
                          [meter] { return meter->Joules().value_or(-1); });
#else
  throw ConfigError("--device cuda: this muster-train was built without CUDA; use --device cpu");
#endif
}

}  // namespace muster::engine
