#pragma once

#include <string>
#include <vector>

#include "controller/plan/forecast.h"
#include "controller/plan/planner.h"
#include "muster/v1/job.pb.h"

// A plan for people and for programs. Pure. Secrets are not in a plan, so they can't appear here.

namespace muster::plan {

enum class RankRows {
  kAll,
  kFolded,  // a few lines when there are more than 16 ranks
  kBrief,   // and of the command only what fits a line
};

// Plain text: sizes with their arithmetic, hosts, rank table, groups, warnings. For plan.txt and
// `muster plan`.
std::string RenderText(const v1::Plan& plan, RankRows rows = RankRows::kAll);

// What goes below it: model, layers, memory by part, predicted speed.
std::string RenderForecast(const v1::Plan& plan, const Forecast& forecast,
                           const Constants& constants);

// One rank: place, coordinates, peers, memory, environment, argv. `spec` is the rank's, from
// MakeRankSpec; values of `secrets` are masked.
std::string RenderRank(const v1::Plan& plan, const v1::JobSpec& job, const v1::RankSpec& spec,
                       const Forecast& forecast);

// The table of `muster plan --compare`; at most `top` rows (0 = all).
std::string RenderComparison(const v1::Plan& plan, const Forecast& forecast,
                             const std::vector<LayoutRow>& rows, const Constants& constants,
                             size_t top);

// One readable JSON object, ending in a newline.
std::string ToJson(const v1::Plan& plan);
// With "groups", "model", "layers", "memory" and "forecast"; null where unknown.
std::string ToJson(const v1::Plan& plan, const Forecast& forecast);
std::string ToJson(const v1::Plan& plan, const v1::JobSpec& job, const v1::RankSpec& spec,
                   const Forecast& forecast);
std::string ToJson(const v1::Plan& plan, const Forecast& forecast,
                   const std::vector<LayoutRow>& rows);

// `word` as a POSIX shell would need it typed; other bytes are kept.
std::string ShellQuoted(const std::string& word);
// The same for the eyes: control characters and bytes that are not UTF-8 are written as the $'...'
// of bash and zsh, so that a terminal finds nothing to obey and the text can still be typed.
std::string ShownQuoted(const std::string& word);

}  // namespace muster::plan
