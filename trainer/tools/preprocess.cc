#include "trainer/tools/preprocess.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "trainer/data/data_error.h"
#include "trainer/data/partial_file.h"
#include "trainer/tools/byte_counts.h"
#include "trainer/tools/ordered_pool.h"

namespace muster::tools {
namespace {

// Weight in flight, of text that was read and not yet written; its tokens can take four times as
// much.
constexpr size_t kMaxInFlight = 32 << 20;
constexpr size_t kMaxChunk = 1 << 20;
constexpr size_t kMinChunk = 64 << 10;

using Pool = OrderedPool<Chunk, EncodedChunk>;

size_t ChunkBytes(int64_t workers) {
  return std::clamp(kMaxInFlight / (Pool::kItemsPerWorker * static_cast<size_t>(workers)),
                    kMinChunk, kMaxChunk);
}

// What a chunk may come to in memory, with what is made of it: for a line and for a text of a list
// (which has two quotes) there are a length, an entry, a few tokens, or a note that it was skipped.
constexpr size_t kLineWeight = 64;
constexpr size_t kQuoteWeight = 16;
size_t Weigh(const Chunk& chunk) {
  const std::string_view text = chunk.bytes.view();
  const auto lines = static_cast<size_t>(chunk.end.index - chunk.first_index);
  return text.size() + kLineWeight * lines + kQuoteWeight * CountByte(text, '"');
}

// Lines of all inputs, for Megatron's sequential partitions.
int64_t CountLines(const std::vector<std::string>& inputs) {
  ChunkReader reader(inputs, {.drop_long = true});
  int64_t lines = 0;
  for (Chunk chunk; reader.Next(chunk);) lines = chunk.end.index;
  return lines;
}

int64_t TotalSize(const std::vector<std::string>& inputs) {
  int64_t total = 0;
  for (const std::string& input : inputs) {
    const int64_t size = FileSize(input);
    if (size == 0 && input == "-") return 0;
    total += size;
  }
  return total;
}

// The state to go on from, if there is one and the run is to go on.
std::optional<ResumeState> Load(const PreprocessOptions& options) {
  if (!options.resume) {
    RemoveResumeState(options.output.prefix);
    return std::nullopt;
  }
  std::optional<ResumeState> state = ReadResumeState(options.output.prefix);
  if (!state) return state;
  const std::string difference = options.identity.DifferenceFrom(state->identity);
  if (!difference.empty()) {
    throw data::DataError("--resume: the interrupted run was another: " + difference +
                          "; start again without --resume");
  }
  return state;
}

class Run {
 public:
  Run(const tokenizer::Tokenizer& tokenizer, const PreprocessOptions& options,
      const EncodeOptions& encode, const std::optional<ResumeState>& start,
      std::optional<int64_t> counted_lines)
      : tokenizer_(tokenizer),
        options_(options),
        encode_(encode),
        counted_lines_(counted_lines),
        reader_(encode.inputs, ReaderOptions(options.workers, encode),
                start ? start->position : InputPosition()),
        output_(options.output, encode.token_type, start),
        progress_(options.progress, options.log_interval, TotalSize(encode.inputs),
                  start ? TakenBefore(encode.inputs, start->position) : 0) {
    if (start) state_ = *start;
    state_.identity = options.identity;
    saved_at_ = std::chrono::steady_clock::now();
  }

  PreprocessResult Go() {
    try {
      Encode();
      CheckLines();
      output_.Prepare();
      state_.complete = true;
      Save();
      progress_.Finish();
      output_.Publish();
    } catch (...) {
      progress_.Clear();
      throw;
    }
    RemoveResumeState(options_.output.prefix);
    return {state_.documents, state_.tokens, output_.skipped()};
  }

 private:
  static ChunkOptions ReaderOptions(int64_t workers, const EncodeOptions& encode) {
    return {encode.format, ChunkBytes(workers), encode.max_document, encode.skip_bad_lines};
  }
  static int64_t TakenBefore(const std::vector<std::string>& inputs, const InputPosition& start) {
    int64_t taken = 0;
    for (size_t i = 0; i < start.file; ++i) taken += FileSize(inputs[i]);
    return taken + start.offset;
  }

  // The lines were dealt out by their number.
  void CheckLines() const {
    if (!counted_lines_ || state_.position.index == *counted_lines_) return;
    throw data::DataError(fmt::format(
        "--keep-sequential-samples: {} lines were counted, but then {} were read: the input was "
        "changed meanwhile; start again",
        *counted_lines_, state_.position.index));
  }

  void Encode() {
    std::vector<Pool::Work> works;
    for (int64_t i = 0; i < options_.workers; ++i) {
      const auto encoder = std::make_shared<ChunkEncoder>(tokenizer_, encode_);
      works.push_back([encoder](Chunk& chunk) { return encoder->Encode(chunk); });
    }
    Pool::Run([this](Chunk& chunk) { return reader_.Next(chunk); }, works,
              [this](const EncodedChunk& chunk) { Write(chunk); }, Weigh, kMaxInFlight);
  }

  void Write(const EncodedChunk& chunk) {
    output_.Append(chunk, encode_.inputs);
    state_.position = chunk.end;
    state_.documents += chunk.documents;
    state_.tokens += chunk.tokens;
    progress_.Add(chunk.documents, chunk.characters, chunk.tokens, chunk.taken);
    if (std::chrono::steady_clock::now() - saved_at_ >= options_.save_interval) Save();
  }

  void Save() {
    output_.Sync(state_);
    WriteResumeState(options_.output.prefix, state_);
    saved_at_ = std::chrono::steady_clock::now();
    output_.Keep();  // an error (a full disk) does not cost more than this run
  }

  const tokenizer::Tokenizer& tokenizer_;
  const PreprocessOptions& options_;
  const EncodeOptions& encode_;
  const std::optional<int64_t> counted_lines_;
  ChunkReader reader_;
  OutputSet output_;
  Progress progress_;
  ResumeState state_;
  std::chrono::steady_clock::time_point saved_at_;
};

}  // namespace

PreprocessResult Preprocess(const tokenizer::Tokenizer& tokenizer,
                            const PreprocessOptions& options) {
  EncodeOptions encode = options.encode;
  encode.token_type = data::TokenTypeFor(tokenizer.vocab_size());
  tokenizer::WorkMemory memory(encode.max_document / 4 * 3,
                               "--max-document-mib raises it (and the memory)");
  encode.encoder = {static_cast<size_t>(options.workers), &memory};
  const auto folder = std::filesystem::path(options.output.prefix).parent_path();
  if (!folder.empty()) encode.spill_folder = folder;
  // Held until the end: only one run at a time reads, writes or removes what has this prefix.
  const data::PartialFile lock(options.output.prefix + ".run");
  const std::optional<ResumeState> start = Load(options);
  if (start && start->complete) {
    OutputSet::PublishLeftover(options.output, *start);
    RemoveResumeState(options.output.prefix);
    return {start->documents, start->tokens, start->skipped, true};
  }
  std::optional<int64_t> lines;
  if (options.keep_sequential && encode.partitioning.count > 1) {
    lines = CountLines(encode.inputs);
    const int64_t count = encode.partitioning.count;
    encode.partitioning.lines_per_part = std::max<int64_t>(1, (*lines + count - 1) / count);
  }
  PreprocessResult result = Run(tokenizer, options, encode, start, lines).Go();
  result.resumed = start.has_value();
  return result;
}

}  // namespace muster::tools
