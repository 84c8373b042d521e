#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

// The text, the vocabulary and the peers of the tokenizer benchmarks. How to get the two rows "per
// core" next to a figure of one's own, all from one run:
//
//   const TokenizerBench bench(source, corpus, 20);   // 20 MB of English in bench.corpus()
//   const Speed tiktoken = bench.MeasurePeer("tiktoken");
//   const Speed hugging_face = bench.MeasurePeer("tokenizers");
//   ... tokenize bench.corpus() with bench.tokenizer_json(), compare MegabytesPerSecond() ...
//
// The peers are Python packages of the development environment, run as child processes on one
// thread each (tests/bench/tokenizer_peers.py).

namespace muster::bench {

// One pass over the text.
struct Speed {
  int64_t bytes = 0;  // UTF-8, without the JSON around it
  int64_t tokens = 0;
  double seconds = 0;  // of CPU time on one core: other load on the machine hardly disturbs it

  double MegabytesPerSecond() const { return static_cast<double>(bytes) / 1e6 / seconds; }
};

// A temporary folder with the text and the vocabulary; gone with the object.
class TokenizerBench {
 public:
  // `source`: the top of the source tree, with its .venv. `corpus`: a plain or gzip text; empty:
  // the dictionary of Debian's dict-gcide. Throws std::runtime_error when a part is missing.
  TokenizerBench(std::filesystem::path source, const std::string& corpus, int megabytes);
  ~TokenizerBench();
  TokenizerBench(const TokenizerBench&) = delete;
  TokenizerBench& operator=(const TokenizerBench&) = delete;

  // Llama 3's vocabulary.
  std::filesystem::path tokenizer_json() const { return folder_ / "tokenizer.json"; }
  // {"text": ...} lines, some kilobytes each.
  std::filesystem::path corpus() const { return folder_ / "corpus.jsonl"; }
  std::vector<std::string> ReadTexts() const;

  // The fastest of `passes` passes of "tiktoken" or "tokenizers" (Hugging Face).
  Speed MeasurePeer(const std::string& peer, int passes = 2) const;

 private:
  std::string RunScript(const std::string& arguments) const;

  const std::filesystem::path source_;
  std::filesystem::path folder_;
};

}  // namespace muster::bench
