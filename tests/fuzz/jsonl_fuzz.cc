// Fuzzes the reading of JSON lines: the cutting of a file into chunks and lines, and the parser,
// which must agree with another parser wherever both follow the same rules.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/unique_fd.h"
#include "trainer/tokenizer/utf8.h"
#include "trainer/tools/json_line.h"
#include "trainer/tools/text_chunks.h"

namespace muster::tools {
namespace {

using nlohmann::json;
using Strings = std::vector<std::string>;

// Longer numbers and deeper nesting are refused here, as in Python, and not there.
constexpr size_t kSmall = 900;

std::optional<Strings> Read(std::string line) {
  try {
    const std::vector<Texts> texts = ReadJsonLine(line, {"text"});
    return Strings(texts.at(0).texts.begin(), texts.at(0).texts.end());
  } catch (const LineError& error) {
    if (error.column < 1 || error.column > line.size() + 1) std::abort();
    return std::nullopt;
  }
}

// What the other parser finds; nothing when it refuses.
std::optional<Strings> ReadOther(const std::string& line) {
  const json value = json::parse(line, nullptr, false);
  if (!value.is_object() || !value.contains("text")) return std::nullopt;
  const json& text = value["text"];
  if (text.is_string()) return Strings{text.get<std::string>()};
  if (!text.is_array()) return std::nullopt;
  Strings texts;
  for (const json& item : text) {
    if (!item.is_string()) return std::nullopt;
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

void FuzzLine(const std::string& line) {
  const auto texts = Read(line);
  if (texts) {
    for (const std::string& text : *texts) {
      if (tokenizer::ValidUtf8Prefix(text) < text.size()) std::abort();
    }
  }
  // It skips a byte order mark and takes a NUL for the end.
  const bool same_rules = line.size() < kSmall && !line.starts_with("\xef\xbb\xbf") &&
                          line.find('\0') == std::string::npos;
  const auto other = same_rules ? ReadOther(line) : std::nullopt;
  if (other && texts != other) std::abort();
}

Strings ReadLines(const std::string& path, size_t target) {
  ChunkReader reader({path}, {.target = target});
  Strings lines;
  int64_t bytes = 0;
  for (Chunk chunk; reader.Next(chunk);) {
    LineSplitter splitter(chunk);
    for (Line line; splitter.Next(line);) {
      if (line.number != static_cast<int64_t>(lines.size()) + 1) std::abort();
      lines.emplace_back(line.text);
    }
    bytes += static_cast<int64_t>(chunk.bytes.size());
    if (chunk.end.offset != bytes || chunk.end.index != static_cast<int64_t>(lines.size())) {
      std::abort();
    }
  }
  return lines;
}

// Lines do not depend on how the file is cut.
Strings FuzzFile(const std::string& text, size_t target) {
  const UniqueFd file(::memfd_create("jsonl_fuzz", MFD_CLOEXEC));
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    std::abort();
  }
  const std::string path = fmt::format("/proc/self/fd/{}", file.get());
  Strings lines = ReadLines(path, 1 << 20);
  if (ReadLines(path, target) != lines) std::abort();
  return lines;
}

// Bytes that say "packed" are another reader's.
bool IsPlain(const std::string& text) {
  for (const std::string head : {"\x1f\x8b", "\x28\xb5\x2f\xfd", "BZh", "\x04\x22\x4d\x18", "PK"}) {
    if (text.starts_with(head)) return false;
  }
  constexpr size_t kSkippable = 1;  // where its fixed bytes are
  return !text.starts_with("\xfd\x37zXZ") && text.find("\x2a\x4d\x18") != kSkippable;
}

}  // namespace
}  // namespace muster::tools

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const size_t target = 1 + data[0];
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (!muster::tools::IsPlain(text)) return 0;
  for (const std::string& line : muster::tools::FuzzFile(text, target)) {
    muster::tools::FuzzLine(line);
  }
  return 0;
}
