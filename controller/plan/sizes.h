#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/v1/job.pb.h"

// The arithmetic of parallel and batch sizes, and the nearest sizes that work out when some do not.
// Pure.

namespace muster::plan {

struct ModelShape;

// Upper bound of a plan: far beyond any hostfile in use, small enough that a slip cannot fill the
// memory.
inline constexpr uint32_t kMaxWorld = 1U << 20;

// All sizes of a job, none missing. The batch sizes are zero for a plain command without any.
struct Sizes {
  uint32_t world = 0;
  uint32_t tp = 1;
  uint32_t pp = 1;
  uint32_t cp = 1;
  uint32_t vp = 1;
  uint32_t dp = 0;
  uint32_t micro_batch = 0;
  uint32_t num_microbatches = 0;
  uint32_t global_batch = 0;
};

// Why sizes do not work out.
struct Misfit {
  enum class Kind {
    kModelParallel,  // world is no multiple of TP x PP x CP: other slot counts or other sizes would
                     // do
    kBatch,          // the batch does not split evenly: other batch sizes or slot counts would do
    kModel,          // layers, heads or sequence do not divide: other sizes would do
    kOther,          // something is missing or contradicts itself: only the text helps
  };
  Kind kind = Kind::kOther;
  std::string text;
};

// TP, PP, CP and VP of 0 become 1.
v1::Parallel WithDefaults(v1::Parallel parallel);

// True if any batch size is given.
bool HasBatch(const v1::Parallel& parallel);

// Fills `out` (may be null), or says what does not fit. `parallel` has its defaults. With a `model`
// its layers, heads and sequence have to divide too.
std::optional<Misfit> Fit(uint32_t world, const v1::Parallel& parallel, Sizes* out,
                          const ModelShape* model = nullptr);

// What is nearest to a misfit and fits; each entry fits by itself, the rest unchanged. Worlds and
// batches: at most one below and one above. Layouts: at most three, the nearest first; where none
// fits with this global batch, with the nearest one that does.
struct Suggestions {
  std::vector<uint32_t> worlds;
  std::vector<v1::Parallel> layouts;  // other TP, PP, CP, VP
  std::vector<uint32_t> global_batches;
  std::vector<uint32_t> num_microbatches;
  std::vector<uint32_t> micro_batches;
};
Suggestions Suggest(uint32_t world, const v1::Parallel& parallel, Misfit::Kind kind,
                    const ModelShape* model = nullptr);

// Every TP x PP x CP (and VP, up to `max_vp`) that `world` divides into and that fits, the other
// sizes as in `parallel`.
std::vector<v1::Parallel> AllLayouts(uint32_t world, const v1::Parallel& parallel,
                                     const ModelShape* model, uint32_t max_vp);

// "TP 4 x PP 8 x CP 1", with " x VP 5" when there are virtual stages, or were in what was given:
// whoever keeps the given VP beside the other sizes would be refused.
std::string LayoutText(const v1::Parallel& parallel, uint32_t given_vp);

// "Nearest slot counts: 12 or 16. Nearest sizes for 15 slots: TP 3 x PP 1 x CP 1." or "".
std::string SuggestionText(uint32_t world, const v1::Parallel& wanted,
                           const Suggestions& suggestions);

// "16 GPUs / (TP 1 x PP 2 x CP 1) = DP 8", "GBS = MBS 1 x 128 x DP 8 = 1024". `device`: "GPU" or
// "slot".
std::vector<std::string> Arithmetic(const Sizes& sizes, std::string_view device);

}  // namespace muster::plan
