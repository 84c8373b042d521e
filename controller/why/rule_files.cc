#include "controller/why/rule_files.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace muster::why {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kMaxFile = 1 << 20;

void Add(std::string_view text, const std::string& source, RuleSet& out) {
  auto rules = ParseRules(text, source);
  if (!rules.ok()) {
    out.errors.emplace_back(rules.status().message());
    return;
  }
  for (Rule& rule : *rules) out.rules.push_back(std::move(rule));
}

void AddFile(const std::string& path, RuleSet& out) {
  std::error_code error;
  if (fs::file_size(path, error) > kMaxFile && !error) {
    out.errors.push_back(absl::StrCat(path, ": larger than ", kMaxFile, " bytes"));
    return;
  }
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) {
    out.errors.push_back(absl::StrCat(path, ": can't be read"));
    return;
  }
  Add(text.str(), path, out);
}

}  // namespace

std::vector<std::string> RuleFolders() {
  std::vector<std::string> folders;
  const char* const config = std::getenv("XDG_CONFIG_HOME");
  const char* const home = std::getenv("HOME");
  if (config != nullptr && config[0] == '/') {
    folders.push_back(absl::StrCat(config, "/muster/rules"));
  } else if (home != nullptr && home[0] == '/') {
    folders.push_back(absl::StrCat(home, "/.config/muster/rules"));
  }
  folders.emplace_back("/etc/muster/rules");
  return folders;
}

RuleSet LoadRules(const v1::JobSpec& spec, const std::vector<std::string>& folders) {
  RuleSet out;
  for (const v1::RuleFile& file : spec.rule_files()) Add(file.text(), file.path(), out);
  for (const std::string& folder : folders) {
    std::vector<std::string> paths;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      if (it->path().extension() == ".toml") paths.push_back(it->path());
    }
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) AddFile(path, out);
  }
  for (size_t i = 0; i < kNumShippedRules; ++i) {
    Add(kShippedRules[i].text, kShippedRules[i].path, out);
  }
  return out;
}

}  // namespace muster::why
