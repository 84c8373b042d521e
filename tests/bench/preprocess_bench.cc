// muster-preprocess with the Llama 3 vocabulary against tiktoken and Hugging Face's tokenizers on
// one core, and against a pool of processes over the latter: same text, same vocabulary, same run.
// And how it uses more cores, and how much memory it takes for an endless input.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/bench/child_process.h"
#include "tests/bench/report.h"
#include "tests/bench/tokenizer_peers.h"

namespace muster::bench {
namespace {

namespace fs = std::filesystem;

constexpr double kMemoryLimitMib = 512;
constexpr size_t kLineBytes = 200'000'000;
constexpr size_t kWordBytes = 30'000'000;

struct Options {
  bool json = false;
  std::string source = ".";
  std::string corpus;
  int megabytes = 40;
  int passes = 3;
  int64_t stream_megabytes = 1500;
  int scaling_copies = 4;
};

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class PreprocessBench {
 public:
  explicit PreprocessBench(const Options& options)
      : options_(options),
        inputs_(options.source, options.corpus, options.megabytes),
        program_(fs::read_symlink("/proc/self/exe").parent_path() / "muster-preprocess"),
        cores_(std::max(1U, std::thread::hardware_concurrency())) {}

  void Run() {
    const Speed tiktoken = inputs_.MeasurePeer("tiktoken");
    const Speed hugging_face = inputs_.MeasurePeer("tokenizers");
    megabytes_ = static_cast<double>(tiktoken.bytes) / 1e6;
    // In turns, so that other load meets all of them; the fastest counts.
    ChildUsage one = Muster(1);
    ChildUsage all = Muster(cores_);
    ChildUsage pool = Pool();
    for (int pass = 1; pass < options_.passes; ++pass) {
      KeepFastest(one, Muster(1));
      KeepFastest(all, Muster(cores_));
      if (pass == 1) KeepFastest(pool, Pool());
    }
    Compare();
    // The peers' figures leave out how long a vocabulary takes to load: so does that of a core.
    const ChildUsage start = Start();
    const double core = megabytes_ / (one.cpu_seconds - start.cpu_seconds);
    const std::map<unsigned, double> scaling = Scaling(start);
    std::map<std::string, Report::Reference> references = {
        {"preprocess.core", {tiktoken.MegabytesPerSecond(), "tiktoken alone"}},
        {"preprocess.core_to_hugging_face",
         {hugging_face.MegabytesPerSecond(), "tokenizers alone"}},
        {"preprocess.command", {megabytes_ / pool.wall_seconds, "a pool over tokenizers"}},
        {"preprocess.peak_memory", {kMemoryLimitMib, "the limit of 512 MiB"}},
        {"preprocess.peak_memory_of_one_line", {kMemoryLimitMib, "the limit of 512 MiB"}},
        {"preprocess.peak_memory_of_one_word", {kMemoryLimitMib, "the limit of 512 MiB"}}};
    for (const auto& [workers, rate] : scaling) {
      references[WorkersRow(workers)] = {workers * scaling.at(1),
                                         std::to_string(workers) + " x one worker"};
    }
    Report report(options_.json, references);
    const auto speed = [&report](const std::string& name, double value, const std::string& remark) {
      report.Add({name, value, "MB/s", true, remark});
    };
    speed("preprocess.peer.tiktoken", tiktoken.MegabytesPerSecond(), "");
    speed("preprocess.peer.tokenizers", hugging_face.MegabytesPerSecond(), "");
    speed("preprocess.peer.pool", megabytes_ / pool.wall_seconds, "whole command, all cores");
    speed("preprocess.core", core,
          fmt::format("by CPU time of the command, less {:.2f} s of its start", start.cpu_seconds));
    speed("preprocess.core_to_hugging_face", core, "");
    speed("preprocess.command", megabytes_ / all.wall_seconds, "all cores");
    for (const auto& [workers, rate] : scaling) {
      speed(WorkersRow(workers), rate, "by wall time of the command, less that of its start");
    }
    report.Add({"preprocess.peak_memory", Stream().peak_mib, "MiB", false,
                fmt::format("{} MB through stdin", options_.stream_megabytes)});
    report.Add({"preprocess.peak_memory_of_one_line", OneLine().peak_mib, "MiB", false,
                fmt::format("a line of {} MB", kLineBytes / 1'000'000)});
    report.Add({"preprocess.peak_memory_of_one_word", OneWord().peak_mib, "MiB", false,
                fmt::format("{} MB of random letters", kWordBytes / 1'000'000)});
    report.Finish();
  }

 private:
  static void KeepFastest(ChildUsage& best, const ChildUsage& next) {
    best.wall_seconds = std::min(best.wall_seconds, next.wall_seconds);
    best.cpu_seconds = std::min(best.cpu_seconds, next.cpu_seconds);
  }

  fs::path Output(const std::string& name) const { return inputs_.corpus().parent_path() / name; }

  static std::string WorkersRow(unsigned workers) {
    return fmt::format("preprocess.workers_{:02}", workers);
  }

  // The input, `copies` times.
  std::vector<std::string> MusterWords(const std::string& input, unsigned workers,
                                       size_t copies = 1) const {
    std::vector<std::string> words = {program_,
                                      "--output-prefix",
                                      Output("muster"),
                                      "--tokenizer-type",
                                      "HuggingFaceTokenizer",
                                      "--tokenizer-model",
                                      inputs_.tokenizer_json(),
                                      "--workers",
                                      std::to_string(workers),
                                      "--input"};
    words.insert(words.end(), copies, input);
    return words;
  }

  // MB/s with 1, 2, 4 ... and all cores; each worker has the same work.
  std::map<unsigned, double> Scaling(const ChildUsage& start) const {
    std::map<unsigned, double> rates;
    for (unsigned workers = 1;; workers = std::min(2 * workers, cores_)) {
      const size_t copies = workers * static_cast<size_t>(options_.scaling_copies);
      const auto words = MusterWords(inputs_.corpus(), workers, copies);
      ChildUsage best = RunChild(words);
      for (int pass = 1; pass < options_.passes; ++pass) KeepFastest(best, RunChild(words));
      rates[workers] =
          static_cast<double>(copies) * megabytes_ / (best.wall_seconds - start.wall_seconds);
      if (workers == cores_) return rates;
    }
  }

  ChildUsage Muster(unsigned workers) const {
    return RunChild(MusterWords(inputs_.corpus(), workers));
  }

  ChildUsage Pool() const {
    const fs::path source = options_.source;
    return RunChild({source / ".venv/bin/python", source / "tests/bench/preprocess_peer.py",
                     "--input", inputs_.corpus(), "--output-prefix", Output("pool"),
                     "--tokenizer-model", inputs_.tokenizer_json(), "--workers",
                     std::to_string(cores_)});
  }

  // The figures are worth nothing if the outputs differ.
  void Compare() const {
    for (const std::string suffix : {".bin", ".idx"}) {
      if (ReadFile(Output("muster_text_document" + suffix)) !=
          ReadFile(Output("pool_text_document" + suffix))) {
        throw std::runtime_error("the two commands wrote different " + suffix + " files");
      }
    }
  }

  // A command with next to nothing to encode.
  ChildUsage Start() const {
    return RunChild(MusterWords("-", 1), [](int fd) { WriteAll(fd, "{\"text\": \"x\"}\n"); });
  }

  static bool WriteAll(int fd, std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = ::write(fd, text.data(), text.size());
      if (n <= 0) return false;
      text.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }

  // The texts of the corpus, again and again, as one.
  ChildUsage OneLine() const {
    const std::vector<std::string> texts = inputs_.ReadTexts();
    return RunChild(MusterWords("-", cores_), [&](int fd) {
      WriteAll(fd, "{\"text\": \"");
      size_t written = 0;
      for (size_t i = 0; written < kLineBytes; i = (i + 1) % texts.size()) {
        const std::string quoted = nlohmann::json(texts[i]).dump();
        if (!WriteAll(fd, std::string_view(quoted).substr(1, quoted.size() - 2))) return;
        written += quoted.size() - 2;
      }
      WriteAll(fd, "\"}\n");
    });
  }

  // Letters that no pattern cuts, and that merge little.
  ChildUsage OneWord() const {
    std::mt19937 random(1);
    std::string word(kWordBytes, 'a');
    for (char& c : word) c = static_cast<char>('a' + random() % 26);
    return RunChild(MusterWords("-", cores_),
                    [&](int fd) { WriteAll(fd, "{\"text\": \"" + word + "\"}\n"); });
  }

  // The corpus again and again.
  ChildUsage Stream() const {
    const std::string text = ReadFile(inputs_.corpus());
    const int64_t limit = options_.stream_megabytes * 1'000'000;
    return RunChild(MusterWords("-", cores_), [&](int fd) {
      for (int64_t written = 0; written < limit;) {
        if (!WriteAll(fd, text)) return;
        written += static_cast<int64_t>(text.size());
      }
    });
  }

  const Options options_;
  const TokenizerBench inputs_;
  const fs::path program_;
  const unsigned cores_;
  double megabytes_ = 0;
};

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  CLI::App app("Speed and memory of muster-preprocess against its peers");
  muster::bench::Options options;
  app.add_flag("--json", options.json, "rows as a JSON list");
  app.add_option("--corpus", options.corpus, "a text to read (default: dict-gcide's dictionary)");
  app.add_option("--megabytes", options.megabytes, "how much of it")->capture_default_str();
  app.add_option("--passes", options.passes, "runs of each command")->capture_default_str();
  app.add_option("--stream-megabytes", options.stream_megabytes, "input of the memory row")
      ->capture_default_str();
  app.add_option("--scaling-copies", options.scaling_copies,
                 "how often each worker gets the corpus where workers are compared")
      ->capture_default_str();
  app.add_option("--source", options.source, "top of the source tree")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    muster::bench::PreprocessBench(options).Run();
  } catch (const std::exception& error) {
    std::cerr << "muster_preprocess_bench: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
