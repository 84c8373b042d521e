#include "common/clock.h"

#include <cstdlib>

namespace muster {
namespace {

class RealClock : public Clock {
 public:
  int64_t RealtimeNs() const override {
    const std::chrono::nanoseconds now = std::chrono::system_clock::now().time_since_epoch();
    return now.count() + skew_ns_;
  }
  std::chrono::steady_clock::time_point Now() const override {
    return std::chrono::steady_clock::now();
  }

 private:
  static int64_t Skew() {
    const char* const text = std::getenv(kClockSkewVariable);
    return text == nullptr ? 0 : std::strtoll(text, nullptr, 10);
  }
  const int64_t skew_ns_ = Skew();
};

}  // namespace

const Clock& Clock::Real() {
  static const RealClock clock;
  return clock;
}

}  // namespace muster
