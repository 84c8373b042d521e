#pragma once

#include <functional>
#include <memory>

#include "trainer/device/ops.h"
#include "trainer/engine/engine.h"

namespace muster::engine {

// The planned model of trainer/device on `ops`. `joules` as Engine::Joules.
std::unique_ptr<Engine> MakeDeviceEngine(const config::TrainConfig& config,
                                         std::unique_ptr<device::Ops> ops,
                                         const parallel::Groups& groups,
                                         std::function<double()> joules);

}  // namespace muster::engine
