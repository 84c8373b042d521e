// Speed of the Llama 3 tokenizer on one core against tiktoken and Hugging Face's tokenizers: same
// text, same vocabulary, same run.
#include <CLI/CLI.hpp>
#include <ctime>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "tests/bench/report.h"
#include "tests/bench/tokenizer_peers.h"
#include "trainer/tokenizer/tokenizer_json.h"

namespace muster::bench {
namespace {

double CpuSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The fastest of `passes`, each with an encoder that has seen nothing yet.
Speed MeasureMuster(const tokenizer::Tokenizer& tokenizer, const std::vector<std::string>& texts,
                    int passes) {
  Speed best;
  for (int pass = 0; pass < passes; ++pass) {
    Speed speed;
    const double start = CpuSeconds();
    const auto encoder = tokenizer.NewEncoder();
    std::vector<int32_t> ids;
    for (const std::string& text : texts) {
      ids.clear();
      encoder->Encode(text, ids);
      speed.bytes += static_cast<int64_t>(text.size());
      speed.tokens += static_cast<int64_t>(ids.size());
    }
    speed.seconds = CpuSeconds() - start;
    if (pass == 0 || speed.seconds < best.seconds) best = speed;
  }
  return best;
}

// One line of 10 MB of `unit` and nothing else. Beside it a line of 1 MB: what takes linear time
// has about the same speed.
Row LongLine(const tokenizer::Tokenizer& tokenizer, const std::string& name,
             const std::string& unit) {
  const auto time_of = [&](size_t bytes) {
    std::string text;
    while (text.size() < bytes) text += unit;
    return MeasureMuster(tokenizer, {text}, 2).MegabytesPerSecond();
  };
  const double small = time_of(1'000'000);
  return {"tokenizer.line_10mb." + name, time_of(10'000'000), "MB/s", true,
          "one of 1 MB: " + std::to_string(small).substr(0, 5)};
}

void Run(const std::string& source, const std::string& corpus, int megabytes, bool json) {
  const TokenizerBench bench(source, corpus, megabytes);
  const Speed tiktoken = bench.MeasurePeer("tiktoken");
  const Speed hugging_face = bench.MeasurePeer("tokenizers");
  const auto tokenizer = tokenizer::LoadTokenizerJson(bench.tokenizer_json().string(),
                                                      {.include_special_tokens = false});
  const Speed muster = MeasureMuster(*tokenizer, bench.ReadTexts(), 5);
  if (muster.tokens != tiktoken.tokens || muster.tokens != hugging_face.tokens) {
    throw std::runtime_error("the tokenizers disagree on the number of tokens");
  }
  Report report(json, {{"tokenizer.llama3.core", {tiktoken.MegabytesPerSecond(), "tiktoken"}},
                       {"tokenizer.llama3.core_to_hugging_face",
                        {hugging_face.MegabytesPerSecond(), "tokenizers"}}});
  const double speed = muster.MegabytesPerSecond();
  report.Add({"tokenizer.peer.tiktoken", tiktoken.MegabytesPerSecond(), "MB/s", true, ""});
  report.Add({"tokenizer.peer.tokenizers", hugging_face.MegabytesPerSecond(), "MB/s", true, ""});
  report.Add({"tokenizer.llama3.core", speed, "MB/s", true, ""});
  report.Add({"tokenizer.llama3.core_to_hugging_face", speed, "MB/s", true, ""});
  report.Add(LongLine(*tokenizer, "letter", "a"));
  report.Add(LongLine(*tokenizer, "space", " "));
  report.Add(LongLine(*tokenizer, "emoji", "\U0001f642"));
  report.Finish();
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  CLI::App app("Speed of the Llama 3 tokenizer on one core against its peers");
  bool json = false;
  std::string corpus;
  std::string source = ".";
  int megabytes = 20;
  app.add_flag("--json", json, "rows as a JSON list");
  app.add_option("--corpus", corpus, "a text to read (default: the dictionary of dict-gcide)");
  app.add_option("--megabytes", megabytes, "how much of it")->capture_default_str();
  app.add_option("--source", source, "top of the source tree")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    muster::bench::Run(source, corpus, megabytes, json);
  } catch (const std::exception& error) {
    std::cerr << "muster_tokenizer_bench: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
