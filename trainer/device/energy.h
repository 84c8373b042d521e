#pragma once

#include <memory>
#include <optional>

namespace muster::device {

// Reads a GPU's energy counter (NVML, found at run time). One thread.
class EnergyMeter {
 public:
  // `ordinal`: as CUDA counts the GPUs that this process sees.
  explicit EnergyMeter(int ordinal);
  ~EnergyMeter();
  EnergyMeter(const EnergyMeter&) = delete;
  EnergyMeter& operator=(const EnergyMeter&) = delete;

  // Joules since the driver was loaded; nothing where the driver does not tell.
  std::optional<double> Joules() const;

 private:
  struct Nvml;
  std::unique_ptr<Nvml> nvml_;
};

}  // namespace muster::device
