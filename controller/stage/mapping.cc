#include "controller/stage/mapping.h"

#include "common/tree.h"

namespace muster::stage {
namespace {

constexpr std::string_view kTemplate = "{stage}";

// `text` with a leading `from` replaced, if it is that path or lies below it.
std::string MovePath(std::string_view text, std::string_view from, std::string_view to) {
  const bool below = !from.empty() && text.starts_with(from) &&
                     (text.size() == from.size() || text[from.size()] == '/');
  if (!below) return std::string(text);
  return std::string(to).append(text.substr(from.size()));
}

std::string FillTemplate(std::string text, const std::string& folder) {
  for (size_t at = text.find(kTemplate); at != std::string::npos;
       at = text.find(kTemplate, at + folder.size())) {
    text.replace(at, kTemplate.size(), folder);
  }
  return text;
}

template <typename Strings, typename Map>
void MapAll(Strings& strings, Map map) {
  for (auto& text : strings) text = map(text);
}

}  // namespace

std::string FolderOn(const v1::StagedTree& staged, const v1::WorkerHello& hello) {
  return hello.state_dir() + "/" + StageFolder(staged.content_id());
}

std::string MapWord(std::string_view word, const v1::StagedTree& staged,
                    const std::string& folder) {
  std::string mapped = MovePath(word, staged.source(), folder);
  const size_t equals = word.find('=');
  if (mapped == word && equals != std::string_view::npos) {
    mapped = std::string(word.substr(0, equals + 1)) +
             MovePath(word.substr(equals + 1), staged.source(), folder);
  }
  return FillTemplate(std::move(mapped), folder);
}

void MapRank(const v1::StagedTree& staged, const std::string& folder, v1::RankSpec& spec) {
  const auto map = [&](const std::string& word) { return MapWord(word, staged, folder); };
  MapAll(*spec.mutable_argv(), map);
  for (v1::EnvVar& variable : *spec.mutable_env()) variable.set_value(map(variable.value()));
  spec.set_working_dir(map(spec.working_dir()));
  v1::EnvVar& variable = *spec.add_env();
  variable.set_name("MUSTER_STAGE");
  variable.set_value(folder);
}

void MapProbe(const v1::StagedTree& staged, const std::string& folder, v1::Probe& probe) {
  const auto map = [&](const std::string& word) { return MapWord(word, staged, folder); };
  probe.set_stage_id(staged.content_id());
  probe.set_working_dir(map(probe.working_dir()));
  probe.set_program(map(probe.program()));
  MapAll(*probe.mutable_readable(), map);
  MapAll(*probe.mutable_optional_files(), map);
  MapAll(*probe.mutable_writable(), map);
  for (v1::EnvVar& variable : *probe.mutable_env()) variable.set_value(map(variable.value()));
}

void UnmapAnswer(const v1::StagedTree& staged, const std::string& folder, v1::ProbeResult& result) {
  const std::string to = staged.source().empty() ? std::string(kTemplate) : staged.source();
  const auto unmap = [&](const std::string& path) { return MovePath(path, folder, to); };
  result.set_program_path(unmap(result.program_path()));
  result.mutable_program()->set_path(unmap(result.program().path()));
  for (auto& file : *result.mutable_files()) file.set_path(unmap(file.path()));
  for (auto& file : *result.mutable_optional_files()) file.set_path(unmap(file.path()));
  for (auto& file : *result.mutable_folders()) file.set_path(unmap(file.path()));
}

}  // namespace muster::stage
