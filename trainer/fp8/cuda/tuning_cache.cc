#include "trainer/fp8/cuda/tuning_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

// The file: a title line, one line an entry, and last a checksum of all before it.
//   # muster GEMM tuning, format 1
//   device TAB library TAB key TAB eight words in hex TAB microseconds
//   # checksum 0123456789abcdef

namespace muster::fp8::cuda {
namespace {

constexpr std::string_view kTitle = "# muster GEMM tuning, format 1\n";
constexpr std::string_view kChecksum = "# checksum ";

// FNV-1a.
uint64_t Hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::string Hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016" PRIx64, value);
  return text;
}

bool ParseHex(const std::string& text, uint64_t* value) {
  char* end = nullptr;
  errno = 0;
  *value = std::strtoull(text.c_str(), &end, 16);
  return text.size() == 16 && *end == '\0' && errno == 0;
}

// The entries' part of a file's text, if the text is whole.
std::optional<std::string_view> Body(std::string_view text) {
  const size_t at = text.rfind(kChecksum);
  if (!text.starts_with(kTitle) || at == std::string_view::npos) return std::nullopt;
  if (text.substr(at) != std::string(kChecksum) + Hex(Hash(text.substr(0, at))) + "\n") {
    return std::nullopt;
  }
  return text.substr(kTitle.size(), at - kTitle.size());
}

// Writes a new file beside `file` and renames it over; an errno value, or 0.
int Replace(const std::string& file, const std::string& text) {
  const std::string temporary = file + "." + std::to_string(getpid()) + ".tmp";
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return errno;
  int error = 0;
  size_t done = 0;
  while (error == 0 && done < text.size()) {
    const ssize_t count = write(fd, text.data() + done, text.size() - done);
    if (count >= 0) {
      done += static_cast<size_t>(count);
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  if (close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && std::rename(temporary.c_str(), file.c_str()) != 0) error = errno;
  if (error != 0) unlink(temporary.c_str());
  return error;
}

}  // namespace

TuningCache::TuningCache(std::string file, std::string device, std::string library, Note note)
    : file_(std::move(file)),
      device_(std::move(device)),
      library_(std::move(library)),
      note_(std::move(note)),
      entries_(Read()) {}

std::string TuningCache::FullKey(const std::string& key) const {
  return device_ + "\t" + library_ + "\t" + key;
}

std::optional<GemmAlgorithm> TuningCache::Find(const std::string& key) const {
  const auto found = entries_.find(FullKey(key));
  if (found == entries_.end()) return std::nullopt;
  return found->second.algorithm;
}

void TuningCache::Add(const std::string& key, const GemmAlgorithm& algorithm, double microseconds) {
  const Entry entry{algorithm, microseconds};
  entries_.insert_or_assign(FullKey(key), entry);
  added_.insert_or_assign(FullKey(key), entry);
}

TuningCache::Entries TuningCache::Read() const {
  std::ifstream stream(file_, std::ios::binary);
  if (file_.empty() || !stream) return {};
  std::stringstream text;
  text << stream.rdbuf();
  const std::string content = text.str();
  const std::optional<std::string_view> body = Body(content);
  if (!body) {
    note_("GEMM tuning cache " + file_ + " is damaged: ignored, and replaced after tuning anew");
    return {};
  }
  Entries entries;
  std::istringstream lines{std::string(*body)};
  std::string device, library, key, words, time;
  while (std::getline(lines, device, '\t') && std::getline(lines, library, '\t') &&
         std::getline(lines, key, '\t') && std::getline(lines, words, '\t') &&
         std::getline(lines, time)) {
    Entry entry;
    entry.microseconds = std::strtod(time.c_str(), nullptr);
    std::istringstream list(words);
    std::string word;
    bool good = true;
    for (uint64_t& value : entry.algorithm.words) good &= list >> word && ParseHex(word, &value);
    if (good) entries.emplace(device + "\t" + library + "\t" + key, entry);
  }
  return entries;
}

void TuningCache::Save() {
  if (file_.empty() || added_.empty()) return;
  Entries entries = Read();  // another process may have added some
  for (const auto& [key, entry] : added_) entries.insert_or_assign(key, entry);
  std::string text(kTitle);
  for (const auto& [key, entry] : entries) {
    text += key + "\t";
    for (size_t i = 0; i < entry.algorithm.words.size(); ++i) {
      text += (i > 0 ? " " : "") + Hex(entry.algorithm.words[i]);
    }
    char time[32];
    std::snprintf(time, sizeof(time), "\t%.1f\n", entry.microseconds);
    text += time;
  }
  text += std::string(kChecksum) + Hex(Hash(text)) + "\n";
  std::error_code ignored;  // Replace reports what matters
  std::filesystem::create_directories(std::filesystem::path(file_).parent_path(), ignored);
  if (const int error = Replace(file_, text); error != 0) {
    note_("GEMM tuning cache " + file_ + " can't be written: " + std::strerror(error) +
          "; the next run tunes again");
    return;
  }
  added_.clear();
}

}  // namespace muster::fp8::cuda
