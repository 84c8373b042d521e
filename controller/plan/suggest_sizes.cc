#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <tuple>

#include "controller/plan/layer_split.h"
#include "controller/plan/sizes.h"

// The nearest sizes that fit. Each candidate is put to Fit() itself, so a suggestion can't be
// wrong, only missing.

namespace muster::plan {
namespace {

bool Fits(uint32_t world, const v1::Parallel& parallel, const ModelShape* model) {
  return !Fit(world, parallel, nullptr, model).has_value();
}

// The nearest multiples of `step` on both sides of `value`, from 1 to `max`, that `accept` takes.
std::vector<uint32_t> NearestMultiples(uint64_t value, uint64_t step, uint64_t max,
                                       const std::function<bool(uint32_t)>& accept) {
  constexpr int kTries = 1 << 16;
  std::vector<uint32_t> out;
  uint64_t below = value / step * step;
  if (below == value && below > 0) below -= step;
  for (int i = 0; i < kTries && below > 0; ++i, below -= step) {
    if (below <= max && accept(static_cast<uint32_t>(below))) {
      out.push_back(static_cast<uint32_t>(below));
      break;
    }
  }
  uint64_t above = (value / step + 1) * step;
  for (int i = 0; i < kTries && above <= max; ++i, above += step) {
    if (accept(static_cast<uint32_t>(above))) {
      out.push_back(static_cast<uint32_t>(above));
      break;
    }
  }
  return out;
}

std::vector<uint32_t> Divisors(uint32_t n) {
  std::vector<uint32_t> out;
  for (uint32_t d = 1; uint64_t{d} * d <= n; ++d) {
    if (n % d != 0) continue;
    out.push_back(d);
    if (d != n / d) out.push_back(n / d);
  }
  std::sort(out.begin(), out.end());
  return out;
}

uint64_t Difference(uint64_t a, uint64_t b) {
  return a > b ? a - b : b - a;
}

uint64_t ModelParallelSize(const v1::Parallel& p) {
  return std::min<uint64_t>(std::numeric_limits<uint32_t>::max(), uint64_t{p.tp()} * p.pp()) *
         p.cp();
}

// Nearest in the product first, then in the number of sizes that change, then in how much they
// change.
std::tuple<uint64_t, int, uint64_t> Distance(const v1::Parallel& a, const v1::Parallel& b) {
  const int changed =
      (a.tp() != b.tp()) + (a.pp() != b.pp()) + (a.cp() != b.cp()) + (a.vp() != b.vp());
  const uint64_t moved = Difference(a.tp(), b.tp()) + Difference(a.pp(), b.pp()) +
                         Difference(a.cp(), b.cp()) + Difference(a.vp(), b.vp());
  return {Difference(ModelParallelSize(a), ModelParallelSize(b)), changed, moved};
}

// The nearest of both sides, or nothing.
std::optional<uint32_t> Nearest(uint32_t value, const std::vector<uint32_t>& sides) {
  std::optional<uint32_t> out;
  for (const uint32_t side : sides) {
    if (!out || Difference(side, value) < Difference(*out, value)) out = side;
  }
  return out;
}

// `layout` with the nearest global batch that fits; nothing if there is none.
std::optional<v1::Parallel> WithNearestBatch(uint32_t world, v1::Parallel layout,
                                             const ModelShape* model) {
  const uint64_t dp = world / ModelParallelSize(layout);
  const auto accept = [&](uint32_t value) {
    layout.set_global_batch(value);
    return Fits(world, layout, model);
  };
  const uint32_t wanted = layout.global_batch();
  const auto batch =
      Nearest(wanted, NearestMultiples(wanted, layout.micro_batch() * dp,
                                       std::numeric_limits<uint32_t>::max(), accept));
  if (!batch) return std::nullopt;
  layout.set_global_batch(*batch);
  return layout;
}

// All layouts whose global batch is theirs to choose.
std::vector<v1::Parallel> LayoutsOfAnyBatch(uint32_t world, const v1::Parallel& wanted,
                                            const ModelShape* model) {
  v1::Parallel open = wanted;
  open.clear_global_batch();
  open.clear_micro_batch();
  std::vector<v1::Parallel> out = AllLayouts(world, open, model, wanted.vp());
  for (v1::Parallel& layout : out) {
    layout.set_global_batch(wanted.global_batch());
    layout.set_micro_batch(wanted.micro_batch());
  }
  return out;
}

std::vector<v1::Parallel> NearestLayouts(uint32_t world, const v1::Parallel& wanted,
                                         const ModelShape* model) {
  constexpr size_t kMost = 3;
  // Virtual stages no larger than wanted: more of them is a different trade.
  std::vector<v1::Parallel> all = AllLayouts(world, wanted, model, wanted.vp());
  const bool any_batch = all.empty() && wanted.global_batch() > 0 && wanted.micro_batch() > 0;
  if (any_batch) all = LayoutsOfAnyBatch(world, wanted, model);
  std::stable_sort(all.begin(), all.end(), [&](const v1::Parallel& a, const v1::Parallel& b) {
    return Distance(a, wanted) < Distance(b, wanted);
  });
  std::vector<v1::Parallel> out;
  for (v1::Parallel& layout : all) {
    if (out.size() == kMost) break;
    if (!any_batch) {
      out.push_back(std::move(layout));
    } else if (auto fitting = WithNearestBatch(world, layout, model)) {
      out.push_back(*std::move(fitting));
    }
  }
  return out;
}

std::string Or(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : " or ") + item;
  return out;
}

std::string Numbers(std::string_view what, const std::vector<uint32_t>& numbers) {
  if (numbers.empty()) return "";
  std::vector<std::string> items;
  items.reserve(numbers.size());
  for (const uint32_t n : numbers) items.push_back(std::to_string(n));
  return fmt::format(" {}: {}.", what, Or(items));
}

}  // namespace

std::vector<v1::Parallel> AllLayouts(uint32_t world, const v1::Parallel& parallel,
                                     const ModelShape* model, uint32_t max_vp) {
  constexpr uint32_t kMostVirtual = 256;
  std::vector<v1::Parallel> out;
  const std::vector<uint32_t> divisors = Divisors(world);
  v1::Parallel candidate = parallel;
  for (const uint32_t tp : divisors) {
    candidate.set_tp(tp);
    for (const uint32_t pp : divisors) {
      if (world % (uint64_t{tp} * pp) != 0) continue;
      candidate.set_pp(pp);
      for (const uint32_t cp : divisors) {
        if (world % (uint64_t{tp} * pp * cp) != 0) continue;
        candidate.set_cp(cp);
        const uint32_t most = pp > 1 ? std::clamp(max_vp, 1U, kMostVirtual) : 1;
        for (uint32_t vp = 1; vp <= most; ++vp) {
          candidate.set_vp(vp);
          if (Fits(world, candidate, model)) out.push_back(candidate);
        }
      }
    }
  }
  return out;
}

std::string LayoutText(const v1::Parallel& p, uint32_t given_vp) {
  return fmt::format("TP {} x PP {} x CP {}{}", p.tp(), p.pp(), p.cp(),
                     p.vp() > 1 || given_vp > 1 ? fmt::format(" x VP {}", p.vp()) : "");
}

Suggestions Suggest(uint32_t world, const v1::Parallel& parallel, Misfit::Kind kind,
                    const ModelShape* model) {
  Suggestions out;
  if (kind == Misfit::Kind::kOther) return out;
  // Where the model does not go into these sizes, no other slot count or batch helps.
  Sizes sizes;
  sizes.tp = parallel.tp();
  sizes.pp = parallel.pp();
  sizes.cp = parallel.cp();
  sizes.vp = parallel.vp();
  if (model != nullptr && CheckModel(*model, sizes)) kind = Misfit::Kind::kModel;
  if (kind == Misfit::Kind::kModel) {
    out.layouts = NearestLayouts(world, parallel, model);
    return out;
  }
  const uint64_t size = ModelParallelSize(parallel);
  out.worlds = NearestMultiples(
      world, size, kMaxWorld, [&](uint32_t candidate) { return Fits(candidate, parallel, model); });
  if (kind == Misfit::Kind::kModelParallel) {
    out.layouts = NearestLayouts(world, parallel, model);
    return out;
  }
  constexpr uint64_t kMax = std::numeric_limits<uint32_t>::max();
  const uint64_t dp = world / size;
  const auto with = [&](auto set) {
    return [&, set](uint32_t value) {
      v1::Parallel candidate = parallel;
      set(candidate, value);
      return Fits(world, candidate, model);
    };
  };
  if (parallel.global_batch() > 0) {
    out.global_batches =
        NearestMultiples(parallel.global_batch(), uint64_t{parallel.micro_batch()} * dp, kMax,
                         with([](auto& p, uint32_t value) { p.set_global_batch(value); }));
    out.micro_batches =
        NearestMultiples(parallel.micro_batch(), 1, parallel.global_batch(),
                         with([](auto& p, uint32_t value) { p.set_micro_batch(value); }));
  } else {
    out.num_microbatches =
        NearestMultiples(parallel.num_microbatches(), parallel.pp(), kMax,
                         with([](auto& p, uint32_t value) { p.set_num_microbatches(value); }));
  }
  return out;
}

std::string SuggestionText(uint32_t world, const v1::Parallel& wanted,
                           const Suggestions& suggestions) {
  std::string out = Numbers("Nearest global batches", suggestions.global_batches) +
                    Numbers("Nearest numbers of micro-batches", suggestions.num_microbatches) +
                    Numbers("Nearest micro-batches", suggestions.micro_batches) +
                    Numbers("Nearest slot counts", suggestions.worlds);
  std::vector<std::string> layouts;
  for (const v1::Parallel& p : suggestions.layouts) {
    layouts.push_back(LayoutText(p, wanted.vp()));
    if (p.global_batch() != wanted.global_batch()) {
      layouts.back() += fmt::format(" with a global batch of {}", p.global_batch());
    }
  }
  if (!layouts.empty()) out += fmt::format(" Nearest sizes for {} slots: {}.", world, Or(layouts));
  return out.empty() ? out : out.substr(1);
}

}  // namespace muster::plan
