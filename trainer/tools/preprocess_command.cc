#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "common/suggest.h"
#include "trainer/data/data_error.h"
#include "trainer/tools/commands.h"
#include "trainer/tools/input_files.h"
#include "trainer/tools/preprocess.h"
#include "trainer/tools/printable.h"
#include "trainer/tools/punkt_splitter.h"
#include "trainer/tools/tokenizer_flags.h"

namespace muster::tools {
namespace {

// Far more than cores; a mistyped number must not start that many threads.
constexpr int64_t kMaxThreads = 1024;
constexpr int64_t kMaxDocumentMib = 1 << 20;  // a TiB
constexpr int64_t kMaxSaveSeconds = 1'000'000'000;

struct Arguments {
  tokenizer::TokenizerOptions tokenizer;
  bool no_special_tokens = false;
  std::vector<std::string> input;
  std::string format = "jsonl";
  std::vector<std::string> json_keys = {"text"};
  bool append_eod = false;
  bool split_sentences = false;
  bool keep_newlines = false;
  std::string language = "english";
  std::string output_prefix;
  int64_t workers = 0;
  int64_t partitions = 1;
  bool keep_sequential = false;
  std::string on_error = "stop";
  int64_t max_document_mib = 256;
  bool resume = false;
  int64_t save_seconds = 10;
  int64_t log_interval = 1000;
  std::string progress = "auto";
};

// Flags that do not change the output: a run may be resumed with others.
const std::set<std::string>& NeutralFlags() {
  static const auto* const names = new std::set<std::string>{"--resume",
                                                             "--workers",
                                                             "--log-interval",
                                                             "--progress",
                                                             "--save-interval",
                                                             "--make-vocab-size-divisible-by",
                                                             "--tensor-model-parallel-size",
                                                             "--trust-remote-code"};
  return *names;
}

Flags MakeFlags(Arguments* args) {
  Flags flags;
  flags.List("--input", &args->input, "files, globs in quotes, or - for stdin; gzip and zstd too");
  flags.Text("--input-format", &args->format,
             "jsonl (a JSON object a line), text (documents between blank lines), lines, file");
  flags.List("--json-keys", &args->json_keys, "keys to read; default: text");
  flags.Switch("--append-eod", &args->append_eod, "end each document with the tokenizer's EOD");
  flags.Switch("--split-sentences", &args->split_sentences,
               "each sentence is a sequence, by NLTK's Punkt; output: PREFIX_<key>_sentence");
  flags.Switch("--keep-newlines", &args->keep_newlines,
               "--split-sentences leaves white space at the end of sentences");
  flags.Text("--lang", &args->language, "language of --split-sentences; default english");
  flags.Text("--output-prefix", &args->output_prefix, "output: PREFIX_<key>_document.bin and .idx");
  AddTokenizerFlags(flags, &args->tokenizer, &args->no_special_tokens);
  flags.Integer("--workers", &args->workers, 1, "threads; default: one for each core");
  flags.Integer("--partitions", &args->partitions, 1,
                "Megatron's order of N partitions (lines 1, N+1, ..., then 2, N+2, ...) and files");
  flags.Switch("--keep-sequential-samples", &args->keep_sequential,
               "partitions of consecutive lines: the order of the lines stays");
  flags.Text("--on-error", &args->on_error,
             "a line that can't be used: stop (default), or skip and list in PREFIX.skipped.jsonl");
  flags.Integer("--max-document-mib", &args->max_document_mib, 1, kMaxDocumentMib,
                "longest line or document; default 256");
  flags.Switch("--resume", &args->resume, "go on where an interrupted run of the same flags was");
  flags.Integer("--save-interval", &args->save_seconds, 0, kMaxSaveSeconds,
                "seconds between notes of how far the run is, for --resume; default 10");
  flags.Integer("--log-interval", &args->log_interval, 1,
                "documents between progress lines; default 1000");
  flags.Text("--progress", &args->progress, "auto (a bar on a terminal), bar, lines or none");
  return flags;
}

template <typename Value>
Value Choose(const std::string& flag, const std::string& word,
             const std::vector<std::pair<std::string, Value>>& choices) {
  std::vector<std::string> names;
  std::string list;
  for (const auto& [name, value] : choices) {
    if (name == word) return value;
    names.push_back(name);
    list += (list.empty() ? "" : ", ") + name;
  }
  throw UsageError(flag + " '" + word + "' is none of " + list + DidYouMean(word, names));
}

InputFormat ParseFormat(const std::string& word) {
  return Choose<InputFormat>("--input-format", word,
                             {{"jsonl", InputFormat::kJsonl},
                              {"text", InputFormat::kText},
                              {"lines", InputFormat::kLines},
                              {"file", InputFormat::kFile}});
}

ProgressStyle ParseProgress(const std::string& word) {
  const ProgressStyle automatic =
      ::isatty(STDERR_FILENO) != 0 ? ProgressStyle::kBar : ProgressStyle::kLines;
  return Choose<ProgressStyle>("--progress", word,
                               {{"auto", automatic},
                                {"bar", ProgressStyle::kBar},
                                {"lines", ProgressStyle::kLines},
                                {"none", ProgressStyle::kNone}});
}

// Megatron's search for a good number of workers.
void RefuseSearch(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    for (const char* flag : {"--find-optimal-num-workers", "--workers-to-check", "--max-documents",
                             "--performance-dir"}) {
      if (!word.starts_with(flag)) continue;
      throw UsageError(std::string(flag) +
                       " is not needed here: leave it out; all cores are used, and the output does "
                       "not depend on --workers");
    }
  }
}

void CheckInput(const std::vector<std::string>& input) {
  if (input.empty()) throw UsageError("--input FILE is missing; see --help");
  if (std::count(input.begin(), input.end(), "-") > 1) throw UsageError("--input - - : one stdin");
  // Otherwise one of our own files may get its number, and be read.
  if (std::count(input.begin(), input.end(), "-") > 0 && ::fcntl(STDIN_FILENO, F_GETFD) < 0) {
    throw data::DataError("--input -: stdin is closed");
  }
}

void CheckPartitions(const Arguments& args) {
  if (args.workers > 0 && args.workers % args.partitions != 0) {
    throw UsageError(fmt::format("--workers {} is not divisible by --partitions {}", args.workers,
                                 args.partitions));
  }
  if (args.partitions == 1) return;
  if (args.format != "jsonl") throw UsageError("--partitions needs --input-format jsonl");
  if (args.keep_sequential && std::count(args.input.begin(), args.input.end(), "-") > 0) {
    throw UsageError(
        "--keep-sequential-samples counts the lines first: it needs a file, not stdin");
  }
}

// Files are read twice then.
void CheckReadableTwice(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    struct stat info {};
    if (::stat(file.c_str(), &info) != 0 || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) {
      continue;  // a missing file, or a folder, is refused when it is opened
    }
    throw UsageError("--keep-sequential-samples counts the lines first: it needs a file, and " +
                     file + " is a pipe or a device");
  }
}

// Two outputs under one name, such as those of --partitions 2 --json-keys text 0_text.
void CheckNames(const OutputNames& names) {
  std::set<std::string> seen;
  const auto add = [&seen](const std::string& name) {
    if (seen.insert(name).second) return;
    throw UsageError("--json-keys, --partitions: two outputs would be named " + name +
                     "; rename a key");
  };
  for (const std::string& key : names.keys) {
    for (int64_t part = 0; part < names.partitions; ++part) add(names.OfPart(part, key));
    if (names.partitions > 1) add(names.Of(key));
  }
}

// Each part keeps several files open: as many as the system lets us.
void RaiseFileLimit() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);  // if not, opening says what is missing
}

// What a run is, for the note beside its output: in UTF-8, whatever the names are in.
RunIdentity MakeIdentity(const std::map<std::string, std::vector<std::string>>& flags,
                         const std::vector<std::string>& files) {
  RunIdentity identity;
  for (const auto& [name, values] : flags) {
    if (NeutralFlags().contains(name)) continue;
    std::vector<std::string>& words = identity.flags[name];
    for (const std::string& value : values) words.push_back(Printable(value));
  }
  for (const auto& [path, facts] : DescribeFiles(files)) identity.files[Printable(path)] = facts;
  return identity;
}

void Check(const Arguments& args) {
  CheckInput(args.input);
  if (args.output_prefix.empty()) throw UsageError("--output-prefix PREFIX is missing; see --help");
  if (args.tokenizer.type.empty()) throw UsageError("--tokenizer-type TYPE is missing; see --help");
  for (const auto& [flag, threads] :
       {std::pair("--workers", args.workers), std::pair("--partitions", args.partitions)}) {
    if (threads <= kMaxThreads) continue;
    throw UsageError(fmt::format("{} {}: at most {}", flag, threads, kMaxThreads));
  }
  if (args.format != "jsonl" && args.json_keys != std::vector<std::string>{"text"}) {
    throw UsageError("--json-keys needs --input-format jsonl");
  }
  if (std::set(args.json_keys.begin(), args.json_keys.end()).size() < args.json_keys.size()) {
    throw UsageError("--json-keys names a key twice");
  }
  if (args.keep_newlines && !args.split_sentences) {
    throw UsageError("--keep-newlines needs --split-sentences");
  }
  CheckPartitions(args);
}

PreprocessOptions MakeOptions(const Arguments& args) {
  PreprocessOptions options;
  options.encode.inputs = ExpandInputs(args.input);
  options.encode.format = ParseFormat(args.format);
  options.encode.json_keys = args.json_keys;
  options.encode.append_eod = args.append_eod;
  options.encode.partitioning.count = args.partitions;
  options.encode.max_document = static_cast<size_t>(args.max_document_mib) << 20;
  options.encode.skip_bad_lines =
      Choose<bool>("--on-error", args.on_error, {{"stop", false}, {"skip", true}});
  options.output.prefix = args.output_prefix;
  options.output.keys = args.json_keys;
  options.output.partitions = args.partitions;
  if (args.split_sentences) options.output.level = "sentence";
  options.keep_sequential = args.keep_sequential;
  options.workers =
      args.workers > 0 ? args.workers : std::max(1U, std::thread::hardware_concurrency());
  options.progress = ParseProgress(args.progress);
  options.log_interval = args.log_interval;
  options.resume = args.resume;
  options.save_interval = std::chrono::seconds(args.save_seconds);
  return options;
}

void PrintResult(const Arguments& args, const PreprocessOptions& options,
                 const PreprocessResult& result, int64_t vocab_size) {
  fmt::print("{} documents, {} tokens, vocabulary {}{}:\n", result.documents, result.tokens,
             vocab_size, result.resumed ? " (resumed)" : "");
  for (const std::string& key : args.json_keys) fmt::print("{}\n", options.output.Of(key));
  if (result.skipped == 0) return;
  fmt::print(stderr, "muster-preprocess: {} line{} left out, see {}\n", result.skipped,
             result.skipped == 1 ? " was" : "s were", options.output.Skipped());
}

}  // namespace

int RunPreprocess(const std::vector<std::string>& words) {
  Arguments args;
  RefuseSearch(words);
  const auto flags = MakeFlags(&args).ParseNoting(words);
  Check(args);
  args.tokenizer.hf_special_tokens = !args.no_special_tokens;
  PreprocessOptions options = MakeOptions(args);
  CheckNames(options.output);
  if (args.keep_sequential && args.partitions > 1) CheckReadableTwice(options.encode.inputs);
  RaiseFileLimit();
  std::vector<std::string> files = options.encode.inputs;
  files.insert(files.end(),
               {args.tokenizer.model, args.tokenizer.vocab_file, args.tokenizer.merge_file});
  options.identity = MakeIdentity(flags, files);
  std::unique_ptr<PunktSplitter> splitter;
  if (args.split_sentences) {
    splitter = std::make_unique<PunktSplitter>(ReadPunktModel(FindPunktModel(args.language)),
                                               args.keep_newlines);
    options.encode.splitter = splitter.get();
  }
  const auto tokenizer = OpenTokenizer(args.tokenizer);
  const PreprocessResult result = Preprocess(*tokenizer, options);
  PrintResult(args, options, result, tokenizer->vocab_size());
  return 0;
}

std::string PreprocessHelp() {
  Arguments args;
  return MakeFlags(&args).Help();
}

}  // namespace muster::tools
