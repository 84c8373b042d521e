#include <fmt/format.h>

#include <span>

#include "common/status.h"
#include "controller/hostfile/host_set.h"
#include "controller/hostfile/host_word.h"
#include "controller/hostfile/hostfile.h"
#include "controller/hostfile/options.h"
#include "controller/hostfile/text.h"

namespace muster::hostfile {
namespace {

constexpr size_t kMaxErrors = 20;

// OpenMPI's rankfile: "rank 0=node01 slot=1".
bool IsRankfileLine(std::span<const std::string_view> words) {
  return words[0] == "rank" && words.size() > 1 &&
         IsDigits(words[1].substr(0, words[1].find('='))) &&
         words[1].find('=') != std::string_view::npos;
}

absl::Status CheckFirstWord(std::span<const std::string_view> words) {
  const std::string_view first = words[0];
  if (IsRankfileLine(words)) {
    return absl::InvalidArgumentError(
        "rankfile lines (rank N=HOST) are not known here: list the hosts in rank order");
  }
  if (first.find('=') != std::string_view::npos && !first.starts_with('-')) {
    return absl::InvalidArgumentError(
        fmt::format("host missing: the line starts with the option {}", Quoted(first)));
  }
  return absl::OkStatus();
}

// HOST:N means slots to OpenMPI and a port to others, so a file must say which.
absl::Status SuffixError(const std::string& suffix) {
  const std::optional<uint32_t> number = ParseDecimal(suffix);
  std::string hint = "write slots=N or port=N";
  if (number && *number >= 1 && *number <= kMaxPort) {
    hint = *number <= kMaxSlots ? fmt::format("write slots={0} or port={0} (ssh)", *number)
                                : fmt::format("write port={} (ssh)", *number);
  }
  return absl::InvalidArgumentError(
      fmt::format("{} after the host is ambiguous: {}", Quoted(":" + suffix), hint));
}

// Everything that can be said about one line by itself; an empty word = nothing on it.
struct ParsedLine {
  HostWord word;
  v1::Host options;
};

absl::StatusOr<ParsedLine> ParseLine(std::string_view line, size_t room) {
  ParsedLine out;
  MUSTER_RETURN_IF_ERROR(CheckLineBytes(line));
  const std::string_view text = StripComment(line);
  MUSTER_RETURN_IF_ERROR(CheckAscii(text));
  const std::vector<std::string_view> words = SplitWords(text);
  if (words.empty()) return out;
  MUSTER_RETURN_IF_ERROR(CheckFirstWord(words));
  MUSTER_ASSIGN_OR_RETURN(out.word, ParseHostWord(words[0], room));
  if (out.word.suffix) return SuffixError(*out.word.suffix);
  MUSTER_ASSIGN_OR_RETURN(out.options,
                          ParseOptions(std::span(words).subspan(1), out.word.hosts.size() > 1,
                                       out.word.user.has_value()));
  return out;
}

Result WholeFileError(uint32_t line, std::string message) {
  Result result;
  result.errors.push_back({line, std::move(message)});
  return result;
}

}  // namespace

Result ParseHostfile(std::string_view bytes) {
  if (bytes.size() > kMaxFileBytes) {
    return WholeFileError(0, fmt::format("file is larger than {} MiB", kMaxFileBytes >> 20));
  }
  if (IsUtf16(bytes)) {
    return WholeFileError(1, "the file is UTF-16: save it as ASCII or UTF-8");
  }
  Result result;
  HostSet hosts("line");
  for (const Line& line : SplitLines(bytes)) {
    if (result.errors.size() == kMaxErrors) return result;
    const absl::StatusOr<ParsedLine> parsed = ParseLine(line.text, hosts.Room());
    if (!parsed.ok()) {
      result.errors.push_back({line.number, std::string(parsed.status().message())});
    } else if (!parsed->word.hosts.empty()) {
      if (auto error = hosts.Add(line.number, parsed->word, parsed->options)) {
        result.errors.push_back(*std::move(error));
      }
    }
  }
  if (result.ok()) result.errors = hosts.CheckWhole();
  if (result.ok()) result.inventory = std::move(hosts).Take();
  return result;
}

}  // namespace muster::hostfile
