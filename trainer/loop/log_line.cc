#include "trainer/loop/log_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

namespace muster::loop {
namespace {

std::string Timestamp(int64_t realtime_us) {
  const time_t seconds = realtime_us / 1'000'000;
  tm local{};
  localtime_r(&seconds, &local);
  char text[32];
  strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  return fmt::format("{}.{:06}", text, realtime_us % 1'000'000);
}

}  // namespace

std::string IterationLine(const IterationLog& log) {
  std::string line = fmt::format(" [{}]", Timestamp(log.realtime_us));
  line += fmt::format(" iteration {:8}/{:8} |", log.iteration, log.train_iters);
  line += fmt::format(" consumed samples: {:12} |", log.consumed_samples);
  line += fmt::format(" elapsed time per iteration (ms): {:.1f} |", log.ms_per_iteration);
  if (log.tflops_per_gpu) {
    line += fmt::format(" throughput per GPU (TFLOP/s/GPU): {:.1f} |", *log.tflops_per_gpu);
  }
  if (log.energy) {
    line += fmt::format(" energy per GPU (J/iter/GPU): {:.1f} |", log.energy->joules_per_gpu);
    line += fmt::format(" power per GPU (W/GPU): {:.1f} |", log.energy->watts_per_gpu);
    line += fmt::format(" energy per token (J): {:.6f} |", log.energy->joules_per_token);
  }
  line += fmt::format(" learning rate: {:.6E} |", log.learning_rate);
  line += fmt::format(" global batch size: {:5} |", log.global_batch_size);
  if (log.lm_loss >= 0) line += fmt::format(" lm loss: {:.6E} |", log.lm_loss);
  line += " loss scale: 1.0 |";  // bf16 and fp32 need none
  line += fmt::format(" grad norm: {:.3f} |", log.grad_norm);
  line += " number of skipped iterations:   0 | number of nan iterations:   0 |";
  return line;
}

std::string RankLine(int64_t rank, const IterationLog& log, double local_loss,
                     int64_t local_samples) {
  return fmt::format(
      " [rank {}] iteration {}/{} | lm loss (local): {:.4f} | lm loss: {:.4f} | samples (local): "
      "{}",
      rank, log.iteration, log.train_iters, local_loss, log.lm_loss, local_samples);
}

std::string ValidationLines(const std::string& where, double lm_loss) {
  constexpr double kLargestExponent = 20;
  const double perplexity = std::exp(std::min(kLargestExponent, lm_loss));
  const std::string line =
      fmt::format(" validation loss at {} | lm loss value: {:.6E} | lm loss PPL: {:.6E} | ", where,
                  lm_loss, perplexity);
  const std::string dashes(line.size() + 1, '-');
  return dashes + "\n" + line + "\n" + dashes;
}

}  // namespace muster::loop
