#include "trainer/device/energy.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

namespace muster::device {

// The few functions of NVML that are needed, by their C signatures (nvml.h is not everywhere).
struct EnergyMeter::Nvml {
  using Device = void*;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*by_bus)(const char*, Device*) = nullptr;
  int (*energy)(Device, unsigned long long*) = nullptr;
  void* library = nullptr;
  Device device = nullptr;
  bool ready = false;

  template <typename F>
  bool Load(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(library, name));
    return function != nullptr;
  }
  bool Open(int ordinal) {
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return false;
    if (!Load(init, "nvmlInit_v2") || !Load(shutdown, "nvmlShutdown") ||
        !Load(by_bus, "nvmlDeviceGetHandleByPciBusId_v2") ||
        !Load(energy, "nvmlDeviceGetTotalEnergyConsumption") || init() != 0) {
      return false;
    }
    ready = true;
    char bus[32];
    return cudaDeviceGetPCIBusId(bus, sizeof(bus), ordinal) == cudaSuccess &&
           by_bus(bus, &device) == 0;
  }
  ~Nvml() {
    if (ready) shutdown();
    if (library != nullptr) dlclose(library);
  }
};

EnergyMeter::EnergyMeter(int ordinal) : nvml_(std::make_unique<Nvml>()) {
  if (!nvml_->Open(ordinal)) nvml_->device = nullptr;
}

EnergyMeter::~EnergyMeter() = default;

std::optional<double> EnergyMeter::Joules() const {
  unsigned long long millijoules = 0;
  if (nvml_->device == nullptr || nvml_->energy(nvml_->device, &millijoules) != 0) {
    return std::nullopt;
  }
  return static_cast<double>(millijoules) * 1e-3;
}

}  // namespace muster::device
