#include "trainer/tokenizer/hf_file.h"

#include <fmt/format.h>

#include "trainer/tokenizer/read_file.h"
#include "trainer/tokenizer/tokenizer.h"

namespace muster::tokenizer {
namespace {

using nlohmann::json;
using Event = json::parse_event_t;

// Takes the entries of model.vocab and model.merges out of the stream of parse events. Depths: the
// keys of the root are at 1, those of "model" at 2, the entries of its tables at 3.
class TableFilter {
 public:
  explicit TableFilter(HfFile* file) : file_(file) {}

  // Whether the parser shall keep the value.
  bool operator()(int depth, Event event, json& parsed) {
    if (event == Event::key) return Key(depth, parsed);
    if (in_model_ && table_ == Table::kVocab && depth == 2 && event == Event::array_start) {
      throw TokenizerError("model.vocab: is a list (of a Unigram model?); only BPE is supported");
    }
    if (in_model_ && table_ == Table::kVocab && depth == 3) return Vocab(event, parsed);
    if (in_model_ && table_ == Table::kMerges && depth >= 3) return Merge(depth, event, parsed);
    return true;
  }

 private:
  enum class Table { kNone, kVocab, kMerges };

  bool Key(int depth, const json& parsed) {
    const auto& key = parsed.get_ref<const std::string&>();
    if (depth == 1) in_model_ = key == "model";
    if (depth == 2) {
      table_ = key == "vocab" ? Table::kVocab : key == "merges" ? Table::kMerges : Table::kNone;
    }
    if (!in_model_ || table_ != Table::kVocab || depth != 3) return true;
    token_ = key;
    return false;
  }

  bool Vocab(Event event, const json& parsed) {
    if (event != Event::value || !parsed.is_number_integer()) {
      throw TokenizerError("model.vocab: '" + token_ + "' has no whole number");
    }
    file_->vocab.emplace_back(std::move(token_), parsed.get<int64_t>());
    return false;
  }

  bool Merge(int depth, Event event, json& parsed) {
    if (event == Event::array_start && depth == 3) {
      parts_.clear();
      return true;
    }
    if (event == Event::value && parsed.is_string() && depth == 3) {
      file_->merges.push_back(
          SplitMerge(parsed.get_ref<const std::string&>(), file_->merges.size()));
      return false;
    }
    if (event == Event::value && parsed.is_string() && depth == 4) {
      parts_.push_back(std::move(parsed.get_ref<std::string&>()));
      return false;
    }
    if (event != Event::array_end || depth != 3 || parts_.size() != 2) {
      throw TokenizerError(
          fmt::format("model.merges[{}] is not a pair of tokens", file_->merges.size()));
    }
    file_->merges.emplace_back(std::move(parts_[0]), std::move(parts_[1]));
    return false;
  }

  HfFile* file_;
  bool in_model_ = false;
  Table table_ = Table::kNone;
  std::string token_;
  std::vector<std::string> parts_;
};

}  // namespace

std::pair<std::string, std::string> SplitMerge(const std::string& line, size_t rank) {
  const size_t space = line.find(' ');
  if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos) {
    throw TokenizerError(fmt::format("model.merges[{}]: '{}' is not two tokens", rank, line));
  }
  return {line.substr(0, space), line.substr(space + 1)};
}

nlohmann::json ReadJsonFile(const std::string& path) {
  try {
    return json::parse(ReadWholeFile(path));
  } catch (const json::exception& error) {
    throw TokenizerError(path + ": " + error.what());
  }
}

HfFile ReadHfFile(const std::string& path) {
  HfFile file;
  TableFilter filter(&file);
  try {
    file.rest = json::parse(ReadWholeFile(path), std::ref(filter));
  } catch (const json::exception& error) {
    throw TokenizerError(path + ": " + error.what());
  } catch (const TokenizerError& error) {
    const std::string message = error.what();
    throw TokenizerError(message.find(path) == std::string::npos ? path + ": " + message : message);
  }
  return file;
}

}  // namespace muster::tokenizer
