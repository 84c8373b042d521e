#include "controller/plan/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "controller/plan/layer_split.h"

namespace muster::plan {
namespace {

constexpr uint64_t kMaxSize = std::numeric_limits<uint32_t>::max();

// Exact up to 2^32 - 1, and then stays above it.
uint64_t Times(uint64_t a, uint64_t b) {
  return std::min(kMaxSize + 1, a * b);
}

Misfit Other(std::string text) {
  return {Misfit::Kind::kOther, std::move(text)};
}

std::optional<Misfit> FitModelParallel(uint32_t world, const v1::Parallel& p, Sizes& out) {
  const uint64_t size = Times(Times(p.tp(), p.pp()), p.cp());
  if (world % size != 0) {
    std::string why = world < size ? fmt::format("{} slots are fewer than", world)
                                   : fmt::format("{} slots are not divisible by", world);
    return Misfit{Misfit::Kind::kModelParallel,
                  fmt::format("{} TP {} x PP {} x CP {} = {}{}", why, p.tp(), p.pp(), p.cp(),
                              size > kMaxSize ? "more than " : "", std::min(size, kMaxSize))};
  }
  if (p.vp() > 1 && p.pp() < 2) {
    return Other(fmt::format(
        "VP {} needs a pipeline: PP is {}, so leave VP out or give PP 2 or more", p.vp(), p.pp()));
  }
  out.world = world;
  out.tp = p.tp();
  out.pp = p.pp();
  out.cp = p.cp();
  out.vp = p.vp();
  out.dp = static_cast<uint32_t>(world / size);
  return std::nullopt;
}

std::optional<Misfit> FitBatch(const v1::Parallel& p, Sizes& out) {
  if (!HasBatch(p)) return std::nullopt;
  if (p.global_batch() > 0 && p.num_microbatches() > 0) {
    return Other(
        "both global_batch and num_microbatches are given: give exactly one, the other "
        "follows from it");
  }
  if (p.micro_batch() == 0) {
    return Other("micro_batch is missing: it is needed with global_batch or num_microbatches");
  }
  if (p.global_batch() == 0 && p.num_microbatches() == 0) {
    return Other("give exactly one of global_batch and num_microbatches with micro_batch");
  }
  out.micro_batch = p.micro_batch();
  const uint64_t step = Times(p.micro_batch(), out.dp);
  if (p.global_batch() > 0) {
    if (p.global_batch() % step != 0) {
      return Misfit{Misfit::Kind::kBatch,
                    fmt::format("GBS {} is not divisible by MBS {} x DP {} = {}", p.global_batch(),
                                p.micro_batch(), out.dp, step)};
    }
    out.global_batch = p.global_batch();
    out.num_microbatches = static_cast<uint32_t>(p.global_batch() / step);
  } else {
    const uint64_t global = Times(step, p.num_microbatches());
    if (global > kMaxSize) {
      return Other(fmt::format("GBS = MBS {} x {} x DP {} is more than {}", p.micro_batch(),
                               p.num_microbatches(), out.dp, kMaxSize));
    }
    out.global_batch = static_cast<uint32_t>(global);
    out.num_microbatches = p.num_microbatches();
  }
  // Interleaving walks the micro-batches in groups of PP.
  if (out.vp > 1 && out.num_microbatches % out.pp != 0) {
    return Misfit{Misfit::Kind::kBatch,
                  fmt::format("{} micro-batches are not divisible by PP {}, which VP {} needs",
                              out.num_microbatches, out.pp, out.vp)};
  }
  return std::nullopt;
}

}  // namespace

v1::Parallel WithDefaults(v1::Parallel parallel) {
  if (parallel.tp() == 0) parallel.set_tp(1);
  if (parallel.pp() == 0) parallel.set_pp(1);
  if (parallel.cp() == 0) parallel.set_cp(1);
  if (parallel.vp() == 0) parallel.set_vp(1);
  return parallel;
}

bool HasBatch(const v1::Parallel& parallel) {
  return parallel.micro_batch() > 0 || parallel.global_batch() > 0 ||
         parallel.num_microbatches() > 0;
}

std::optional<Misfit> Fit(uint32_t world, const v1::Parallel& parallel, Sizes* out,
                          const ModelShape* model) {
  Sizes sizes;
  if (auto misfit = FitModelParallel(world, parallel, sizes)) return misfit;
  if (auto misfit = FitBatch(parallel, sizes)) return misfit;
  if (model != nullptr) {
    if (auto why = CheckModel(*model, sizes)) return Misfit{Misfit::Kind::kModel, *std::move(why)};
  }
  if (out != nullptr) *out = sizes;
  return std::nullopt;
}

std::vector<std::string> Arithmetic(const Sizes& sizes, std::string_view device) {
  std::vector<std::string> out;
  out.push_back(fmt::format("{} {}{} / (TP {} x PP {} x CP {}) = DP {}", sizes.world, device,
                            sizes.world == 1 ? "" : "s", sizes.tp, sizes.pp, sizes.cp, sizes.dp));
  if (sizes.global_batch > 0) {
    out.push_back(fmt::format("GBS = MBS {} x {} x DP {} = {}", sizes.micro_batch,
                              sizes.num_microbatches, sizes.dp, sizes.global_batch));
  }
  return out;
}

}  // namespace muster::plan
