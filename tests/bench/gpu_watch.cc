#include "tests/bench/gpu_watch.h"

#include <chrono>
#include <cstdio>

namespace muster::bench {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(400);
constexpr int kSettling = 4;  // samples

std::string Ask(const char* query) {
  const std::string command =
      std::string("nvidia-smi --id=0 --format=csv,noheader,nounits --query-gpu=") + query +
      " 2>/dev/null";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  char line[256] = "";
  const bool got = std::fgets(line, sizeof(line), pipe) != nullptr;
  const bool good = pclose(pipe) == 0 && got;
  std::string text = good ? line : "";
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

std::string DescribeGpu() {
  return Ask("name,driver_version,power.limit");
}

GpuWatch::GpuWatch() : thread_([this] { Sample(); }) {}

GpuWatch::~GpuWatch() {
  Stop();
}

void GpuWatch::Sample() {
  for (int sample = 0; !stop_; ++sample) {
    double megahertz = 0, watts = 0;
    const std::string answer = Ask("clocks.sm,power.draw.instant");
    if (sample >= kSettling && std::sscanf(answer.c_str(), "%lf, %lf", &megahertz, &watts) == 2) {
      sum_.megahertz += megahertz;
      sum_.watts += watts;
      ++sum_.samples;
    }
    std::this_thread::sleep_for(kInterval);
  }
}

GpuWatch::Means GpuWatch::Stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  if (sum_.samples == 0) return {};
  return {sum_.megahertz / sum_.samples, sum_.watts / sum_.samples, sum_.samples};
}

}  // namespace muster::bench
