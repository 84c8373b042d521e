#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/indexed_format.h"
#include "trainer/data/partial_file.h"

namespace muster::data {

class IndexedDataset;

// How far a writer came: enough to go on in another process.
struct WriterState {
  int64_t bin_bytes = 0;
  int64_t sequences = 0;
  int64_t documents = 0;
};

// Writes PREFIX.bin and PREFIX.idx as Megatron does. Memory use does not grow with the data.
// Nothing appears under the final names before Publish. One thread. Throws DataError.
class IndexedWriter {
 public:
  // With `resume`, goes on with the temporary files that an interrupted writer left.
  IndexedWriter(const std::string& prefix, TokenType type,
                const std::optional<WriterState>& resume = std::nullopt);

  // Appends documents: their tokens (in the token type), the length of each sequence, the number of
  // sequences of each document (0 is an empty document).
  void Append(std::span<const uint8_t> tokens, std::span<const int32_t> lengths,
              std::span<const int32_t> sequences_per_document);
  // Appends tokens that the next Append has the lengths of: all of the open file `fd`.
  void AppendTokens(int fd, int64_t bytes, const std::string& name);
  // Appends what another writer of the same type has written so far.
  void Append(const IndexedWriter& other);
  // Checks and appends a whole data set of the same type. `with_modes`: and its multimodal modes,
  // which it must have.
  void Append(const IndexedDataset& dataset, bool with_modes);

  // Makes what was appended durable and says how much it is.
  WriterState Sync();

  // Writes .idx, still under its temporary name. Nothing can be appended afterwards.
  void Prepare();
  // Gives both files their final names.
  void Publish();
  void Finish() {
    Prepare();
    Publish();
  }
  // Throws unless a writer that was interrupted after Prepare, when `state` was what it had
  // written, left all of it, under temporary or final names.
  static void CheckLeftover(const std::string& prefix, const WriterState& state);
  // Checks this and publishes it.
  static void PublishLeftover(const std::string& prefix, const WriterState& state);
  // Leaves the temporary files for a later run on destruction, as does a writer that resumed.
  void Keep();

  const std::string& prefix() const { return prefix_; }
  TokenType type() const { return type_; }
  int64_t num_documents() const { return num_documents_; }
  int64_t num_sequences() const { return num_sequences_; }

 private:
  std::string prefix_;
  TokenType type_;
  PartialFile bin_;
  PartialFile index_;
  // Parts of .idx that grow with the data, until Prepare.
  PartialFile lengths_;
  PartialFile documents_;  // where each document ends, in sequences; without the leading 0
  PartialFile modes_;
  int64_t num_sequences_ = 0;
  int64_t num_documents_ = 0;
};

}  // namespace muster::data
