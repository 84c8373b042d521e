#include "worker/facts/limits.h"

#include <sys/resource.h>

#include <limits>

namespace muster::facts {
namespace {

uint64_t HardLimit(__rlimit_resource resource) {
  rlimit limit;
  if (getrlimit(resource, &limit) != 0) return 0;
  return limit.rlim_max == RLIM_INFINITY ? std::numeric_limits<uint64_t>::max() : limit.rlim_max;
}

}  // namespace

Limits RankLimits() {
  return {HardLimit(RLIMIT_MEMLOCK), HardLimit(RLIMIT_NOFILE)};
}

}  // namespace muster::facts
