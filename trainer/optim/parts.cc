#include "trainer/optim/parts.h"

#include <algorithm>
#include <utility>

namespace muster::optim {

std::vector<model::Parameter> PartsWithin(const std::vector<model::Parameter>& parameters,
                                          int64_t begin, int64_t end) {
  std::vector<model::Parameter> parts;
  int64_t start = 0;
  for (const model::Parameter& parameter : parameters) {
    const int64_t count = parameter.value.numel();
    const int64_t first = std::max(begin, start), last = std::min(end, start + count);
    if (first < last) {
      model::Parameter part = parameter;
      part.value = parameter.value.view({-1}).narrow(0, first - start, last - first);
      part.grad = parameter.grad.view({-1}).narrow(0, first - start, last - first);
      parts.push_back(std::move(part));
    }
    start += count;
  }
  return parts;
}

}  // namespace muster::optim
