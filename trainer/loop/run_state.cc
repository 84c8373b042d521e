#include "trainer/loop/run_state.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>
#include <functional>

#include "trainer/checkpoint/checkpoint_store.h"
#include "trainer/checkpoint/hf_config.h"
#include "trainer/checkpoint/hf_folder.h"
#include "trainer/config/error.h"
#include "trainer/config/flag_table.h"
#include "trainer/loop/whole_state.h"
#include "trainer/model/hf_mapping.h"

namespace muster::loop {
namespace {

using checkpoint::NamedTensor;
using config::TrainConfig;

// Runs `work` on rank 0 and tells all ranks how it went: the error itself on rank 0, a
// CheckpointError elsewhere.
void OnFirstRank(Run& run, const char* what, const std::function<void()>& work) {
  const at::Tensor failed = at::zeros({1}, at::kLong);
  std::exception_ptr error;
  if (run.IsFirstRank()) {
    try {
      work();
    } catch (...) {
      error = std::current_exception();
      failed.fill_(1);
    }
  }
  run.groups.world->Broadcast(failed, 0);
  if (error) std::rethrow_exception(error);
  if (failed.item<int64_t>() != 0) {
    throw CheckpointError(fmt::format("rank 0 could not {}; its record says why", what));
  }
}

std::vector<NamedTensor> WeightTensors(const engine::State& state) {
  std::vector<NamedTensor> tensors;
  for (const model::Parameter& p : state.parameters)
    tensors.push_back({"model." + p.name, p.value});
  return tensors;
}

std::vector<NamedTensor> OptimizerTensors(const engine::State& state) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, tensor] : state.optimizer) {
    tensors.push_back({"optimizer." + name, tensor});
  }
  return tensors;
}

std::vector<NamedTensor> Fp8Tensors(const engine::State& state) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, tensor] : state.fp8) tensors.push_back({"fp8." + name, tensor});
  return tensors;
}

void Append(std::vector<NamedTensor>& to, std::vector<NamedTensor> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// What must stay the same for the learning rate to go on as planned.
std::map<std::string, std::string> ScheduleOf(const Run& run) {
  const TrainConfig& c = run.config();
  std::map<std::string, std::string> schedule = {
      {"lr", fmt::format("{}", run.lr.max_lr)},
      {"decoupled-lr", fmt::format("{}", run.decoupled_lr.max_lr)},
      {"lr-decay-style", c.lr_decay_style},
      {"warm-up in samples", fmt::format("{}", run.lr.warmup_samples)},
  };
  if (c.lr_decay_style != "constant") {
    schedule["min-lr"] = fmt::format("{}", run.lr.min_lr);
    schedule["decoupled-min-lr"] = fmt::format("{}", run.decoupled_lr.min_lr);
    schedule["decay in samples"] = fmt::format("{}", run.lr.decay_samples);
  }
  return schedule;
}

void CheckSchedule(const Run& run, const checkpoint::FoundCheckpoint& found) {
  if (run.config().override_opt_param_scheduler || run.config().finetune) return;
  for (const auto& [name, value] : ScheduleOf(run)) {
    const auto it = found.index.schedule.find(name);
    if (it == found.index.schedule.end() || it->second == value) continue;
    throw ConfigError(
        fmt::format("learning rate: {} is {}, but {} was written with {}; give the same, or "
                    "--override-opt_param-scheduler",
                    name, value, found.folder.string(), it->second));
  }
}

constexpr char kDataOrder[] = "data order";

void CheckDataOrder(const Run& run, const checkpoint::FoundCheckpoint& found) {
  const auto written = found.index.schedule.find(kDataOrder);
  const std::string ours = DataOrderText(run.config());
  if (run.config().finetune || written == found.index.schedule.end() || written->second == ours) {
    return;
  }
  throw ConfigError(fmt::format(
      "the order of the samples is '{}', but {} was written with '{}', so the samples that it "
      "consumed would be others: give the same --data-order, --index-order and --seed, or "
      "--finetune to start the data anew",
      ours, found.folder.string(), written->second));
}

// Progress of the checkpoint that rank 0 found, on every rank; nothing when there is none.
std::optional<checkpoint::Progress> ShareProgress(
    Run& run, const std::optional<checkpoint::FoundCheckpoint>& found) {
  const at::Tensor message = at::zeros({5}, at::kLong);
  int64_t* values = message.data_ptr<int64_t>();
  if (found) {
    const checkpoint::Progress& p = found->index.progress;
    values[0] = 1;
    values[1] = p.iteration;
    values[2] = p.consumed_train_samples;
    values[3] = p.consumed_valid_samples;
    values[4] = p.optimizer_step;
  }
  run.groups.world->Broadcast(message, 0);
  if (values[0] == 0) return std::nullopt;
  return checkpoint::Progress{values[1], values[2], values[3], values[4]};
}

bool ResumeFrom(Run& run, Start& start) {
  const TrainConfig& c = run.config();
  checkpoint::Search search;
  OnFirstRank(run, "look for checkpoints", [&] {
    search = checkpoint::FindNewestWhole(c.load);
    if (search.found) {
      CheckSchedule(run, *search.found);
      CheckDataOrder(run, *search.found);
    }
    if (!search.found && (c.exit_on_missing_checkpoint || !search.skipped.empty())) {
      const std::string skipped = fmt::format("{}", fmt::join(search.skipped, "; "));
      throw CheckpointError(fmt::format("--load {}: no whole checkpoint there{}{}", c.load,
                                        skipped.empty() ? "" : ": ", skipped));
    }
  });
  start.skipped = search.skipped;
  const auto progress = ShareProgress(run, search.found);
  if (!progress) return false;

  engine::State state = FetchWhole(run, engine::Contents::kAll);
  const bool whole = !c.finetune;
  if (!whole || c.no_load_optim) state.optimizer.clear();
  if (!whole) state.fp8.clear();
  std::vector<NamedTensor> tensors = WeightTensors(state);
  Append(tensors, OptimizerTensors(state));
  Append(tensors, Fp8Tensors(state));
  OnFirstRank(run, "load the checkpoint", [&] { checkpoint::LoadTensors(*search.found, tensors); });
  StoreWhole(run, state, engine::Contents::kAll);
  if (whole) start.progress = *progress;
  if (whole && !c.no_load_optim) run.engine->set_step_count(progress->optimizer_step);
  start.source =
      (std::filesystem::path(c.load) / checkpoint::IterationFolder(progress->iteration)).string();
  return true;
}

void LoadHuggingFace(Run& run) {
  engine::State state = FetchWhole(run, engine::Contents::kWeights);
  OnFirstRank(run, "load the Hugging Face folder", [&] {
    const checkpoint::HfFolder folder(run.config().load_hf);
    if (run.config().model.untie_embeddings_and_output_weights &&
        !folder.Contains("lm_head.weight")) {
      throw CheckpointError(fmt::format(
          "{}: no tensor 'lm_head.weight', so its head is the word embedding; leave out "
          "--untie-embeddings-and-output-weights, or set \"tie_word_embeddings\": true in its "
          "config.json",
          run.config().load_hf));
    }
    try {
      model::LoadHfWeights(
          run.config().model, [&folder](const std::string& name) { return folder.Load(name); },
          state.parameters);
    } catch (const std::invalid_argument& error) {
      throw CheckpointError(run.config().load_hf + ": " + error.what());
    }
  });
  StoreWhole(run, state, engine::Contents::kWeights);
}

}  // namespace

Start LoadState(Run& run) {
  Start start;
  if (!run.config().load.empty() && ResumeFrom(run, start)) return start;
  if (!run.config().load_hf.empty()) {
    LoadHuggingFace(run);
    start.source = run.config().load_hf;
    return start;
  }
  start.source = "initial weights";
  return start;
}

std::string SaveState(Run& run, const checkpoint::Progress& progress) {
  const TrainConfig& c = run.config();
  checkpoint::CheckpointIndex index;
  index.progress = progress;
  index.progress.optimizer_step = run.engine->step_count();
  index.schedule = ScheduleOf(run);
  index.schedule[kDataOrder] = DataOrderText(c);
  for (const config::Flag& flag : config::FlagTable()) {
    if (run.line.Given(flag.name))
      index.arguments[std::string(flag.name)] = config::ValueText(flag, c);
  }
  const engine::State state = FetchWhole(run, engine::Contents::kAll);
  std::vector<NamedTensor> tensors = WeightTensors(state);
  if (!c.no_save_optim) Append(tensors, OptimizerTensors(state));
  Append(tensors, Fp8Tensors(state));
  OnFirstRank(run, "save the checkpoint",
              [&] { checkpoint::SaveCheckpoint(c.save, std::move(index), tensors); });
  return (std::filesystem::path(c.save) / checkpoint::IterationFolder(progress.iteration)).string();
}

void SaveHuggingFace(Run& run) {
  const engine::State state = FetchWhole(run, engine::Contents::kWeights);
  OnFirstRank(run, "write the Hugging Face folder", [&run, &state] {
    const TrainConfig& c = run.config();
    const bool bf16 = c.model.params_dtype == config::DType::kBf16;
    const bool fp64 = c.model.params_dtype == config::DType::kFp64;
    const char* const dtype = bf16 ? "bfloat16" : fp64 ? "float64" : "float32";
    std::vector<NamedTensor> tensors;
    for (auto& [name, tensor] :
         model::ToHf(c.model, state.parameters, model::HfKind::kWeights, c.vocab_size)) {
      tensors.push_back({name, bf16 ? tensor.to(at::kBFloat16) : tensor});
    }
    checkpoint::WriteHfFolder(c.save_hf,
                              checkpoint::HfConfigFromModel(c.model, c.vocab_size, dtype), tensors);
  });
}

}  // namespace muster::loop
