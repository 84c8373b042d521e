#pragma once

#include <vector>

#include "trainer/model/parameter.h"
#include "trainer/parallel/groups.h"

// Gradients of parameters that several ranks of one model have.

namespace muster::optim {

// Sums partial gradients over the tensor-parallel ranks, and those of a tied embedding over the
// first and the last stage. All ranks of the model make the call.
void SumSharedGradients(const parallel::Groups& groups, std::vector<model::Parameter>& parameters);

// Sum of squares of the gradients that this rank counts (model::Parameter::duplicate), in double.
double SquaredNorm(const std::vector<model::Parameter>& parameters);

}  // namespace muster::optim
