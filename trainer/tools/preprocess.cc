#include "trainer/tools/preprocess.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "trainer/data/indexed_writer.h"
#include "trainer/tools/ordered_pool.h"

namespace muster::tools {
namespace {

constexpr size_t kChunkBytes = 1 << 20;

// Megatron's progress line.
class Progress {
 public:
  explicit Progress(int64_t interval) : interval_(interval) {}

  void Add(int64_t documents, int64_t characters) {
    const int64_t before = documents_;
    documents_ += documents;
    characters_ += characters;
    if (documents_ / interval_ > before / interval_) Print();
  }

  void Print() const {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
    const double megabytes = static_cast<double>(characters_) / 1024 / 1024;
    fmt::print(stderr, "Processed {} documents ({} docs/s, {} MB/s).\n", documents_,
               static_cast<double>(documents_) / elapsed.count(), megabytes / elapsed.count());
  }

  int64_t documents() const { return documents_; }

 private:
  int64_t interval_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  int64_t documents_ = 0;
  int64_t characters_ = 0;
};

using Writers = std::vector<std::unique_ptr<data::IndexedWriter>>;

// One pass over the input, for one partition.
void Pass(const tokenizer::Tokenizer& tokenizer, const EncodeOptions& options, int64_t workers,
          const Writers& writers, Progress& progress, PreprocessResult& result) {
  using Pool = OrderedPool<Chunk, EncodedChunk>;
  ChunkReader reader(options.input, options.format, kChunkBytes);
  std::vector<Pool::Work> works;
  for (int64_t i = 0; i < workers; ++i) {
    const auto encoder = std::make_shared<ChunkEncoder>(tokenizer, options);
    works.push_back([encoder](const Chunk& chunk) { return encoder->Encode(chunk); });
  }
  const int64_t token_bytes = data::TokenBytes(options.token_type);
  Pool::Run([&reader](Chunk& chunk) { return reader.Next(chunk); }, works,
            [&](EncodedChunk chunk) {
              for (size_t i = 0; i < writers.size(); ++i) {
                const EncodedColumn& column = chunk.columns[i];
                writers[i]->Append(column.tokens, column.lengths, column.sequences_per_document);
                result.tokens += static_cast<int64_t>(column.tokens.size()) / token_bytes;
              }
              progress.Add(chunk.documents, chunk.characters);
            });
}

}  // namespace

PreprocessResult Preprocess(const tokenizer::Tokenizer& tokenizer,
                            const PreprocessOptions& options) {
  EncodeOptions encode = options.encode;
  encode.token_type = data::TokenTypeFor(tokenizer.vocab_size());
  Writers writers;
  for (const std::string& key : encode.json_keys) {
    writers.push_back(std::make_unique<data::IndexedWriter>(
        options.output_prefix + "_" + key + "_document", encode.token_type));
  }
  Progress progress(options.log_interval);
  PreprocessResult result;
  for (encode.partition = 0; encode.partition < encode.partitions; ++encode.partition) {
    Pass(tokenizer, encode, options.workers, writers, progress, result);
  }
  for (const auto& writer : writers) writer->Finish();
  progress.Print();
  result.documents = progress.documents();
  return result;
}

}  // namespace muster::tools
