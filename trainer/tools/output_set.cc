#include "trainer/tools/output_set.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "trainer/data/partial_file.h"
#include "trainer/tools/printable.h"

namespace muster::tools {

using data::IndexedWriter;
using data::PartialFile;

namespace {

constexpr size_t kWriteBytes = 1 << 16;

struct NamedWriter {
  std::string prefix;
  data::WriterState state;
};

// All that Prepare brings to its end: the files of each part and key, and those merged from them.
std::vector<NamedWriter> AllWriters(const OutputNames& names, const ResumeState& state) {
  std::vector<NamedWriter> writers;
  std::vector<data::WriterState> merged(names.keys.size());
  for (int64_t part = 0; part < names.partitions; ++part) {
    for (size_t k = 0; k < names.keys.size(); ++k) {
      const data::WriterState& writer = state.writers.at(writers.size());
      writers.push_back({names.OfPart(part, names.keys[k]), writer});
      merged[k].bin_bytes += writer.bin_bytes;
      merged[k].sequences += writer.sequences;
      merged[k].documents += writer.documents;
    }
  }
  for (size_t k = 0; names.partitions > 1 && k < names.keys.size(); ++k) {
    writers.push_back({names.Of(names.keys[k]), merged[k]});
  }
  return writers;
}

}  // namespace

std::string OutputNames::Of(const std::string& key) const {
  return fmt::format("{}_{}_{}", prefix, key, level);
}

std::string OutputNames::OfPart(int64_t part, const std::string& key) const {
  return partitions == 1 ? Of(key) : fmt::format("{}_{}_{}_{}", prefix, part, key, level);
}

std::string OutputNames::Skipped() const {
  return prefix + ".skipped.jsonl";
}

OutputSet::OutputSet(const OutputNames& names, data::TokenType type,
                     const std::optional<ResumeState>& resume)
    : names_(names), type_(type), num_skipped_(resume ? resume->skipped : 0) {
  for (int64_t part = 0; part < names.partitions; ++part) {
    for (const std::string& key : names.keys) {
      std::optional<data::WriterState> state;
      if (resume) state = resume->writers.at(writers_.size());
      writers_.push_back(std::make_unique<IndexedWriter>(names.OfPart(part, key), type, state));
    }
  }
  skipped_ = std::make_unique<PartialFile>(names.Skipped(), resume ? resume->skipped_bytes : -1);
}

void OutputSet::Append(const EncodedChunk& chunk, const std::vector<std::string>& inputs) {
  for (size_t i = 0; i < writers_.size(); ++i) {
    const EncodedColumn& column = chunk.columns[i];
    if (const SpillFile* spilled = column.spilled()) {
      writers_[i]->AppendTokens(spilled->fd(), spilled->size(), spilled->name());
    }
    writers_[i]->Append(column.token_bytes(), column.lengths, column.sequences_per_document);
  }
  std::string text;
  for (const SkippedLine& line : chunk.skipped) {
    const nlohmann::ordered_json entry = {{"file", Printable(inputs[line.file])},
                                          {"line", line.line},
                                          {"column", line.column},
                                          {"reason", line.reason}};
    text += entry.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    if (text.size() < kWriteBytes) continue;
    skipped_->Write(text.data(), text.size());
    text.clear();
  }
  skipped_->Write(text.data(), text.size());
  num_skipped_ += static_cast<int64_t>(chunk.skipped.size());
}

void OutputSet::Sync(ResumeState& state) {
  state.writers.clear();
  for (const auto& writer : writers_) state.writers.push_back(writer->Sync());
  skipped_->Sync();
  state.skipped_bytes = skipped_->size();
  state.skipped = num_skipped_;
}

void OutputSet::Prepare() {
  if (names_.partitions > 1) {
    for (const std::string& key : names_.keys) {
      auto merged = std::make_unique<IndexedWriter>(names_.Of(key), type_);
      for (size_t i = merged_.size(); i < writers_.size(); i += names_.keys.size()) {
        merged->Append(*writers_[i]);
      }
      merged->Prepare();
      merged_.push_back(std::move(merged));
    }
  }
  for (const auto& writer : writers_) writer->Prepare();
  skipped_->Sync();
}

void OutputSet::Publish() {
  for (const auto& writer : writers_) writer->Publish();
  for (const auto& writer : merged_) writer->Publish();
  ::unlink(names_.Skipped().c_str());  // of an earlier run
  skipped_->Keep(false);
  if (num_skipped_ > 0) skipped_->Publish();
}

void OutputSet::PublishLeftover(const OutputNames& names, const ResumeState& state) {
  const std::vector<NamedWriter> writers = AllWriters(names, state);
  for (const NamedWriter& writer : writers) {
    IndexedWriter::CheckLeftover(writer.prefix, writer.state);
  }
  if (state.skipped > 0) PartialFile::CheckLeftover(names.Skipped(), state.skipped_bytes);
  for (const NamedWriter& writer : writers) {
    IndexedWriter::PublishLeftover(writer.prefix, writer.state);
  }
  if (state.skipped > 0) {
    PartialFile::PublishLeftover(names.Skipped(), state.skipped_bytes);
  } else {
    ::unlink(PartialFile::TemporaryPath(names.Skipped()).c_str());
    ::unlink(names.Skipped().c_str());  // of an earlier run
  }
}

void OutputSet::Keep() {
  for (const auto& writer : writers_) writer->Keep();
  for (const auto& writer : merged_) writer->Keep();
  skipped_->Keep(true);
}

}  // namespace muster::tools
