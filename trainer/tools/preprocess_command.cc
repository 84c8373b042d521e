#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "common/suggest.h"
#include "trainer/data/data_error.h"
#include "trainer/tools/commands.h"
#include "trainer/tools/preprocess.h"
#include "trainer/tools/tokenizer_flags.h"

namespace muster::tools {
namespace {

// Far more than cores; a mistyped number must not start that many threads.
constexpr int64_t kMaxThreads = 1024;

struct Arguments {
  tokenizer::TokenizerOptions tokenizer;
  bool no_special_tokens = false;
  std::string input;
  std::string format = "jsonl";
  std::vector<std::string> json_keys = {"text"};
  bool append_eod = false;
  std::string output_prefix;
  int64_t workers = 0;
  int64_t partitions = 1;
  bool keep_sequential = false;
  int64_t log_interval = 1000;
};

Flags MakeFlags(Arguments* args) {
  Flags flags;
  flags.Text("--input", &args->input, "the text; - is stdin");
  flags.Text("--input-format", &args->format,
             "jsonl (a JSON object a line), text (documents between blank lines), lines");
  flags.List("--json-keys", &args->json_keys, "keys to read; default: text");
  flags.Switch("--append-eod", &args->append_eod, "end each document with the tokenizer's EOD");
  flags.Text("--output-prefix", &args->output_prefix, "output: PREFIX_<key>_document.bin and .idx");
  AddTokenizerFlags(flags, &args->tokenizer, &args->no_special_tokens);
  flags.Integer("--workers", &args->workers, 1, "threads; default: one for each core");
  flags.Integer("--partitions", &args->partitions, 1,
                "Megatron's order of N partitions: lines 1, N+1, ..., then 2, N+2, ...");
  flags.Switch("--keep-sequential-samples", &args->keep_sequential,
               "keep the order of the lines whatever --partitions says");
  flags.Integer("--log-interval", &args->log_interval, 1, "documents between progress lines");
  return flags;
}

InputFormat ParseFormat(const std::string& name) {
  if (name == "jsonl") return InputFormat::kJsonl;
  if (name == "text") return InputFormat::kText;
  if (name == "lines") return InputFormat::kLines;
  throw UsageError("--input-format '" + name + "' is none of jsonl, text, lines" +
                   DidYouMean(name, {"jsonl", "text", "lines"}));
}

void Check(const Arguments& args) {
  if (args.input.empty()) throw UsageError("--input FILE is missing; see --help");
  if (args.output_prefix.empty()) throw UsageError("--output-prefix PREFIX is missing; see --help");
  if (args.tokenizer.type.empty()) throw UsageError("--tokenizer-type TYPE is missing; see --help");
  for (const auto& [flag, threads] :
       {std::pair("--workers", args.workers), std::pair("--partitions", args.partitions)}) {
    if (threads <= kMaxThreads) continue;
    throw UsageError(fmt::format("{} {}: at most {}", flag, threads, kMaxThreads));
  }
  // Otherwise one of our own files may get its number, and be read.
  if (args.input == "-" && ::fcntl(STDIN_FILENO, F_GETFD) < 0) {
    throw data::DataError("--input -: stdin is closed");
  }
  if (args.workers % args.partitions != 0) {
    throw UsageError(fmt::format("--workers {} is not divisible by --partitions {}", args.workers,
                                 args.partitions));
  }
  if (args.format != "jsonl" && args.json_keys != std::vector<std::string>{"text"}) {
    throw UsageError("--json-keys needs --input-format jsonl");
  }
  if (args.partitions > 1 && (args.input == "-" || args.format != "jsonl")) {
    throw UsageError("--partitions needs an --input file of --input-format jsonl");
  }
}

}  // namespace

int RunPreprocess(const std::vector<std::string>& words) {
  Arguments args;
  MakeFlags(&args).Parse(words);
  if (args.workers == 0 && args.partitions == 1) {
    args.workers = std::max(1U, std::thread::hardware_concurrency());
  }
  Check(args);
  args.tokenizer.hf_special_tokens = !args.no_special_tokens;

  PreprocessOptions options;
  options.encode.input = args.input;
  options.encode.format = ParseFormat(args.format);
  options.encode.json_keys = args.json_keys;
  options.encode.append_eod = args.append_eod;
  options.encode.partitions = args.keep_sequential ? 1 : args.partitions;
  options.output_prefix = args.output_prefix;
  options.workers = std::max<int64_t>(args.workers, args.partitions);
  options.log_interval = args.log_interval;
  const auto tokenizer = tokenizer::MakeTokenizer(args.tokenizer);
  const PreprocessResult result = Preprocess(*tokenizer, options);
  fmt::print("{} documents, {} tokens, vocabulary {}:\n", result.documents, result.tokens,
             tokenizer->vocab_size());
  for (const std::string& key : args.json_keys) {
    fmt::print("{}_{}_document\n", args.output_prefix, key);
  }
  return 0;
}

std::string PreprocessHelp() {
  Arguments args;
  return MakeFlags(&args).Help();
}

}  // namespace muster::tools
