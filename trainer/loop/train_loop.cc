#include "trainer/loop/train_loop.h"

#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <utility>

#include "trainer/loop/baselines.h"
#include "trainer/loop/evaluate.h"
#include "trainer/loop/progress_log.h"
#include "trainer/loop/run_state.h"
#include "trainer/loop/signals.h"

namespace muster::loop {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

double SecondsSince(steady_clock::time_point start) {
  return duration<double>(steady_clock::now() - start).count();
}

// The life of one TrainLoop call.
class Loop {
 public:
  explicit Loop(Run& run) : run_(run), log_(run) {}

  ExitCode Train() {
    Announce(LoadState(run_));
    while (progress_.iteration < run_.sizes.train_iters) {
      const IterationResult result = Iterate();
      if (EvaluationIsDue()) EvaluateAlong();
      if (const auto code = SaveOrLeave(result.votes)) return *code;
    }
    SaveUnlessSaved();
    EvaluateAtTheEnd();
    if (!run_.config().save_hf.empty()) {
      SaveHuggingFace(run_);
      Say(fmt::format(" wrote the weights to {}\n", run_.config().save_hf));
    }
    if (run_.config().report_baselines) ReportBaselines();
    run_.groups.world->Barrier();  // nobody leaves while another still needs it
    return ExitCode::kOk;
  }

 private:
  // Rank 0's words about the run as a whole.
  void Say(const std::string& text) {
    if (!run_.IsFirstRank()) return;
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }

  int64_t ParametersOfTheModel() {
    const at::Tensor count = at::scalar_tensor(run_.engine->parameter_count(), at::kLong);
    run_.groups.model->AllReduce(count, parallel::ReduceOp::kSum);
    return count.item<int64_t>();
  }

  // "data parallel 4", with what else there is.
  std::string Layout() const {
    const parallel::ParallelSizes& sizes = run_.groups.sizes;
    std::string text = fmt::format("data parallel {}", sizes.data);
    for (const auto& [name, size] :
         {std::pair{"tensor", sizes.tensor}, std::pair{"pipeline", sizes.pipeline},
          std::pair{"context", sizes.context}}) {
      if (size > 1) text += fmt::format(", {} parallel {}", name, size);
    }
    return text;
  }

  void Announce(const Start& start) {
    progress_ = start.progress;
    saved_at_ = progress_.iteration;
    const int64_t weights = ParametersOfTheModel();
    for (const std::string& skipped : start.skipped) Say(" skipped checkpoint " + skipped + "\n");
    Say(fmt::format(" {} parameters, {}, {} micro-batches of {} | {} | from {} at iteration {}\n",
                    weights, Layout(), run_.sizes.num_microbatches, run_.config().micro_batch_size,
                    run_.data.train == nullptr
                        ? "no training data"
                        : fmt::format("{} training samples", run_.data.train->size()),
                    start.source, progress_.iteration));
    run_.events->Write("start", {{"world_size", run_.env.world_size},
                                 {"parameters", weights},
                                 {"iteration", progress_.iteration},
                                 {"train_iters", run_.sizes.train_iters},
                                 {"source", start.source}});
  }

  IterationResult Iterate() {
    const auto start = steady_clock::now();
    const IterationResult result =
        TrainIteration(run_, progress_.iteration + 1, progress_.consumed_train_samples, MyVotes());
    ++progress_.iteration;
    progress_.consumed_train_samples += run_.config().global_batch_size;
    if (progress_.iteration == 1) first_loss_ = result.lm_loss;
    log_.Add(progress_.iteration, progress_.consumed_train_samples, result, SecondsSince(start));
    return result;
  }

  Votes MyVotes() const {
    const auto limit = run_.config().exit_duration_in_mins;
    return {.terminate = TerminationRequested(),
            .overtime = limit && SecondsSince(run_.program_start) > *limit * 60};
  }

  bool CanEvaluate() const { return run_.config().eval_iters > 0 && run_.data.valid != nullptr; }
  bool EvaluationIsDue() const {
    return CanEvaluate() && progress_.iteration % run_.config().eval_interval == 0;
  }

  double EvaluateNext() {
    const double loss = Evaluate(run_, *run_.data.valid, progress_.consumed_valid_samples);
    progress_.consumed_valid_samples += run_.config().eval_iters * run_.config().global_batch_size;
    return loss;
  }

  void EvaluateAlong() {
    log_.AddEvaluation(fmt::format("iteration {}", progress_.iteration), progress_.iteration,
                       EvaluateNext());
  }

  void EvaluateAtTheEnd() {
    const std::string at = fmt::format("iteration {} on ", progress_.iteration);
    if (CanEvaluate()) {
      held_out_loss_ = EvaluateNext();
      log_.AddEvaluation(at + "validation set", progress_.iteration, *held_out_loss_);
    }
    if (run_.config().eval_iters > 0 && run_.data.test != nullptr) {
      log_.AddEvaluation(at + "test set", progress_.iteration, Evaluate(run_, *run_.data.test, 0));
    }
  }

  // After an iteration: what is due, in Megatron's order. A code means: leave.
  std::optional<ExitCode> SaveOrLeave(const Votes& votes) {
    const config::TrainConfig& c = run_.config();
    const bool can_save = !c.save.empty();
    if (votes.terminate) {
      SaveUnlessSaved();
      return Leave("SIGTERM", can_save ? ExitCode::kSignalSaved : ExitCode::kTerminated);
    }
    if (can_save && c.save_interval && progress_.iteration % *c.save_interval == 0)
      SaveUnlessSaved();
    const bool last = progress_.iteration == run_.sizes.train_iters;
    if (votes.overtime && !last) {
      SaveUnlessSaved();
      return Leave("--exit-duration-in-mins", ExitCode::kOk);
    }
    if (c.exit_interval && progress_.iteration % *c.exit_interval == 0 && !last) {
      SaveUnlessSaved();
      return Leave("--exit-interval", ExitCode::kOk);
    }
    return std::nullopt;
  }

  ExitCode Leave(const char* reason, ExitCode code) {
    Say(fmt::format(" leaving at iteration {}: {}\n", progress_.iteration, reason));
    run_.events->Write("exit", {{"iteration", progress_.iteration},
                                {"reason", std::string(reason)},
                                {"code", static_cast<int64_t>(code)}});
    run_.groups.world->Barrier();
    return code;
  }

  void SaveUnlessSaved() {
    if (run_.config().save.empty() || saved_at_ == progress_.iteration) return;
    const auto start = steady_clock::now();
    const std::string folder = SaveState(run_, progress_);
    saved_at_ = progress_.iteration;
    Say(fmt::format("  successfully saved checkpoint from iteration {:7d} to {}\n",
                    progress_.iteration, folder));
    run_.events->Write(
        "checkpoint",
        {{"iteration", progress_.iteration}, {"folder", folder}, {"seconds", SecondsSince(start)}});
  }

  // The validation split itself, whole and in file order, whatever the order and number of the
  // samples that were drawn.
  void ReportBaselines() {
    if (!run_.IsLastRank()) return;
    data::DataConfig whole = MakeDataConfig(run_);
    if (whole.order == data::DataOrder::kShuffled) whole.order = data::DataOrder::kSequential;
    whole.train_samples = whole.test_samples = 0;
    whole.valid_samples = std::nullopt;
    const data::Datasets text = held_out_loss_ ? data::BuildDatasets(whole) : data::Datasets{};
    const UnigramEntropy entropy =
        text.valid ? EntropyOfLabels(*text.valid, run_.config().model.padded_vocab_size)
                   : UnigramEntropy{};
    std::fputs(
        BaselineLines(first_loss_, run_.config().vocab_size, held_out_loss_, entropy).c_str(),
        stdout);
    std::fflush(stdout);
    run_.events->Write("baselines", {{"vocab_size", run_.config().vocab_size},
                                     {"first_loss", first_loss_.value_or(0)},
                                     {"held_out_loss", held_out_loss_.value_or(0)},
                                     {"unigram_entropy", entropy.nats_per_token},
                                     {"unigram_tokens", entropy.tokens}});
  }

  Run& run_;
  ProgressLog log_;
  checkpoint::Progress progress_;
  int64_t saved_at_ = 0;
  std::optional<double> first_loss_;  // of iteration 1
  std::optional<double> held_out_loss_;
};

}  // namespace

ExitCode TrainLoop(Run& run) {
  return Loop(run).Train();
}

}  // namespace muster::loop
