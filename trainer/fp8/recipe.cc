#include "trainer/fp8/recipe.h"

#include "trainer/fp8/delayed_recipe.h"
#include "trainer/fp8/scaling.h"

namespace muster::fp8 {
namespace {

// Current ("tensorwise") scaling: every tensor is quantised with the scale of its own amax. No
// state.
class TensorwiseRecipe : public Recipe {
 public:
  explicit TensorwiseRecipe(config::Fp8Format format) : format_(format) {}

  QuantizedTensor Quantize(int64_t, Role role, const at::Tensor& x, bool) override {
    const Format format = FormatOf(format_, role);
    return fp8::Quantize(x, CurrentScale(Amax(x), format), format);
  }
  void AfterForward() override {}
  void AfterBackward() override {}
  std::vector<std::pair<std::string, at::Tensor>> State() override { return {}; }

 private:
  const config::Fp8Format format_;
};

}  // namespace

Format FormatOf(config::Fp8Format format, Role role) {
  return format == config::Fp8Format::kHybrid && role == Role::kGradOutput ? Format::kE5m2
                                                                           : Format::kE4m3;
}

std::unique_ptr<Recipe> MakeRecipe(const config::Fp8Config& config,
                                   const std::vector<std::string>& linears,
                                   parallel::Communicator* amax_group) {
  if (linears.empty()) return nullptr;
  switch (config.recipe) {
    case config::Fp8Recipe::kDelayed:
      return std::make_unique<DelayedRecipe>(config, linears, amax_group);
    case config::Fp8Recipe::kTensorwise:
      return std::make_unique<TensorwiseRecipe>(config.format);
    case config::Fp8Recipe::kNone:
      break;
  }
  return nullptr;
}

}  // namespace muster::fp8
