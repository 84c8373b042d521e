#include "controller/cli/summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "controller/cli/text.h"
#include "controller/why/node_lines.h"
#include "controller/why/render.h"

namespace muster::cli {
namespace {

std::string Toned(const why::TextLine& line, const Style& style) {
  using Tone = why::TextLine::Tone;
  std::string text = why::Format(line);
  switch (line.tone) {
    case Tone::kBad:
      return style.Red(text);
    case Tone::kGood:
      return style.Green(text);
    case Tone::kQuiet:
      return style.Dim(text);
    case Tone::kPlain:
      break;
  }
  return text;
}

}  // namespace

std::string JobTitle(const v1::Job& job) {
  const std::string& name = job.plan().name().empty() ? job.spec().name() : job.plan().name();
  return name.empty() ? job.id() : fmt::format("{} ({})", job.id(), EscapeForDisplay(name));
}

std::vector<std::string> NodeLines(const v1::Job& job, const Style& style) {
  const std::vector<why::NodeLine> nodes = why::NodeLines(job);
  size_t width = 0;
  for (const why::NodeLine& node : nodes) width = std::max(width, node.host.size());
  std::vector<std::string> lines;
  lines.reserve(nodes.size());
  for (const why::NodeLine& node : nodes) {
    lines.push_back(fmt::format("{:<{}}  {}  {}", node.host, width,
                                node.clean ? style.Green(node.verdict) : style.Red(node.verdict),
                                node.details));
  }
  return lines;
}

bool AllClean(const v1::Job& job) {
  return std::all_of(job.ends().begin(), job.ends().end(),
                     [](const v1::NodeEnd& end) { return end.clean(); });
}

std::vector<std::string> WhyLines(const why::Why& why, const Style& style) {
  const std::string headline = why::Headline(why);
  std::vector<std::string> lines = {why.state == v1::JOB_STATE_FAILED ? style.Red(headline)
                                    : why.state == v1::JOB_STATE_SUCCEEDED
                                        ? style.Green(headline)
                                        : style.Yellow(headline)};
  for (const why::TextLine& line : why::Lines(why)) lines.push_back(Toned(line, style));
  return lines;
}

}  // namespace muster::cli
