#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/indexed_writer.h"
#include "trainer/tools/encode_chunk.h"
#include "trainer/tools/resume_state.h"

namespace muster::tools {

// What the files are called.
struct OutputNames {
  std::string prefix;
  std::vector<std::string> keys;
  std::string level = "document";  // or "sentence"
  int64_t partitions = 1;

  // PREFIX_<key>_<level>: the prefix of the .bin and .idx of a key.
  std::string Of(const std::string& key) const;
  // PREFIX_<part>_<key>_<level>, as Megatron calls those of a partition.
  std::string OfPart(int64_t part, const std::string& key) const;
  // PREFIX.skipped.jsonl
  std::string Skipped() const;
};

// The output of a run: .bin and .idx for each key, with partitions also for each of them, and the
// list of skipped lines. Nothing has its final name before Publish; what is not published is
// removed on destruction, unless it is kept. One thread. Throws data::DataError.
class OutputSet {
 public:
  OutputSet(const OutputNames& names, data::TokenType type,
            const std::optional<ResumeState>& resume);

  void Append(const EncodedChunk& chunk, const std::vector<std::string>& inputs);

  // Makes what was appended durable, and notes in `state` how much it is.
  void Sync(ResumeState& state);

  // Writes the index files and, from partitions, the merged files.
  void Prepare();
  void Publish();
  // Publishes what a run left that was killed between Prepare and the end of Publish, when `state`
  // was its last note. Throws, and publishes nothing, unless all of it is there.
  static void PublishLeftover(const OutputNames& names, const ResumeState& state);

  // Leaves the temporary files for a later run.
  void Keep();

  int64_t skipped() const { return num_skipped_; }

 private:
  OutputNames names_;
  data::TokenType type_;
  std::vector<std::unique_ptr<data::IndexedWriter>> writers_;  // of part p and key k: p * keys + k
  std::vector<std::unique_ptr<data::IndexedWriter>> merged_;   // of each key, with partitions
  std::unique_ptr<data::PartialFile> skipped_;
  int64_t num_skipped_ = 0;
};

}  // namespace muster::tools
