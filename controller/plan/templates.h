#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <string>
#include <string_view>

#include "muster/v1/job.pb.h"

// `{name}` in a rank's argv. Only our own names are templates; every other brace passes byte for
// byte, so JSON, Jinja and shell words need no escaping:
//   {rank}          the value
//   {{rank}}        the text {rank}
//   ${rank}         left alone: a shell variable, or torchrun's own macro
//   {"a":{rank}}    {"a":3}
//   {epoch}         left alone: not one of ours, nor nearly
//   {locl_rank}     an error: nearly one of ours

namespace muster::plan {

struct Launch;

// Template name -> value for one rank.
using TemplateValues = std::map<std::string, std::string, std::less<>>;
TemplateValues ValuesFor(const v1::Plan& plan, uint32_t rank, const Launch& launch);

// InvalidArgument for a name that is nearly one of ours.
absl::Status CheckTemplates(std::string_view text);

// `text` with its templates filled. It has passed CheckTemplates.
std::string FillTemplates(std::string_view text, const TemplateValues& values);

}  // namespace muster::plan
