#include "trainer/tools/punkt_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <vector>

#include "trainer/data/data_error.h"

namespace muster::tools {
namespace {

using data::DataError;

// Calls `use` with each line and its number.
void ForEachLine(const std::string& path,
                 const std::function<void(const std::string& line, int64_t number)>& use) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw DataError("open " + path + ": it belongs to NLTK's punkt_tab data");
  int64_t number = 0;
  for (std::string line; std::getline(file, line);) use(line, ++number);
}

std::unordered_set<std::string> ReadSet(const std::string& path) {
  std::unordered_set<std::string> lines;
  ForEachLine(path, [&](const std::string& line, int64_t) { lines.insert(line); });
  return lines;
}

[[noreturn]] void Fail(const std::string& path, int64_t line, const char* expected) {
  throw DataError(fmt::format("{}:{}: expected {}", path, line, expected));
}

// What follows the one tab of a line.
std::string_view AfterTab(const std::string& path, const std::string& line, int64_t number) {
  const size_t tab = line.find('\t');
  if (tab == std::string::npos || line.find('\t', tab + 1) != std::string::npos) {
    Fail(path, number, "two words with a tab between them");
  }
  return std::string_view(line).substr(tab + 1);
}

std::vector<std::string> DataFolders() {
  std::vector<std::string> folders;
  if (const char* data = std::getenv("NLTK_DATA")) {
    std::istringstream list(data);
    for (std::string folder; std::getline(list, folder, ':');) {
      if (!folder.empty()) folders.push_back(folder);
    }
  }
  if (const char* home = std::getenv("HOME")) folders.push_back(std::string(home) + "/nltk_data");
  for (const char* root : {"/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib"}) {
    folders.push_back(std::string(root) + "/nltk_data");
  }
  return folders;
}

}  // namespace

PunktModel ReadPunktModel(const std::string& folder) {
  PunktModel model;
  model.abbreviations = ReadSet(folder + "/abbrev_types.txt");
  model.sentence_starters = ReadSet(folder + "/sent_starters.txt");
  const std::string collocations = folder + "/collocations.tab";
  ForEachLine(collocations, [&](const std::string& line, int64_t number) {
    AfterTab(collocations, line, number);
    model.collocations.insert(line);
  });
  const std::string contexts = folder + "/ortho_context.tab";
  ForEachLine(contexts, [&](const std::string& line, int64_t number) {
    const std::string_view digits = AfterTab(contexts, line, number);
    int bits = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
    if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) {
      Fail(contexts, number, "a word, a tab and a whole number");
    }
    model.contexts[line.substr(0, line.size() - digits.size() - 1)] = bits;
  });
  return model;
}

std::string FindPunktModel(const std::string& language) {
  const bool is_name = !language.empty() && language.find_first_of("/.") == std::string::npos;
  std::string searched;
  for (const std::string& folder : DataFolders()) {
    std::string model = fmt::format("{}/tokenizers/punkt_tab/{}", folder, language);
    if (is_name && std::filesystem::is_directory(model)) return model;
    searched += "\n  " + model;
  }
  throw DataError(
      "--split-sentences --lang " + language +
      ": no Punkt model; get NLTK's with `python -m nltk.downloader punkt_tab`, or name "
      "its folder in NLTK_DATA. Looked for:" +
      searched);
}

}  // namespace muster::tools
