#include "trainer/data/data_paths.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <sstream>

#include <nlohmann/json.hpp>

#include "trainer/data/data_error.h"
#include "trainer/data/split.h"

namespace muster::data {
namespace {

using nlohmann::json;

std::string ReadText(const std::string& flag, const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             &std::fclose);
  std::string text;
  char block[4096];
  while (file != nullptr) {
    const size_t n = std::fread(block, 1, sizeof(block), file.get());
    text.append(block, n);
    if (n < sizeof(block)) break;
  }
  if (file == nullptr || std::ferror(file.get()) != 0) {
    throw DataError(flag + ": read " + path + ": " + std::strerror(errno));
  }
  return text;
}

std::vector<std::string> Words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// `where` names the list in messages.
BlendList ParseList(const std::string& where, const std::vector<std::string>& words) {
  if (words.empty()) throw DataError(where + ": names no data set");
  try {
    return ParseBlend(words);
  } catch (const DataError& error) {
    throw DataError(where + ": " + error.what());
  }
}

std::vector<std::string> WordsOfJson(const std::string& where, const json& value) {
  if (value.is_string()) return Words(value.get<std::string>());
  if (!value.is_array()) {
    throw DataError(where + ": expected a list of words, a text with them, or null");
  }
  std::vector<std::string> words;
  for (const json& word : value) {
    if (!word.is_string() && !word.is_number()) {
      throw DataError(where + ": " + word.dump() + " is neither a text nor a number");
    }
    words.push_back(word.is_string() ? word.get<std::string>() : word.dump());
  }
  return words;
}

std::array<std::optional<BlendList>, 3> ReadPerSplit(const std::string& path) {
  const std::string flag = "--per-split-data-args-path";
  const std::string text = ReadText(flag, path);
  json all;
  try {
    all = json::parse(text);
  } catch (const json::parse_error& error) {
    throw DataError(flag + " " + path + ": " + error.what());
  }
  std::array<std::optional<BlendList>, 3> lists;
  for (const Split split : kSplits) {
    const std::string key = NameOf(split);
    if (!all.is_object() || !all.contains(key)) {
      throw DataError(flag + " " + path + ": no key \"" + key +
                      "\"; it needs train, valid and test (null for none)");
    }
    if (all[key].is_null()) continue;
    const std::string where = flag + " " + path + ", \"" + key + "\"";
    lists[static_cast<size_t>(split)] = ParseList(where, WordsOfJson(where, all[key]));
  }
  return lists;
}

}  // namespace

DataPaths ReadDataPaths(const DataPathFlags& flags) {
  DataPaths paths;
  if (!flags.data_path.empty()) {
    paths.shared = ParseList("--data-path", flags.data_path);
  } else if (!flags.data_args_path.empty()) {
    paths.shared = ParseList("--data-args-path " + flags.data_args_path,
                             Words(ReadText("--data-args-path", flags.data_args_path)));
  } else if (!flags.per_split_data_args_path.empty()) {
    paths.per_split = ReadPerSplit(flags.per_split_data_args_path);
  } else if (flags.HasLists()) {
    const std::pair<const char*, const std::vector<std::string>*> given[] = {
        {"--train-data-path", &flags.train_data_path},
        {"--valid-data-path", &flags.valid_data_path},
        {"--test-data-path", &flags.test_data_path}};
    for (size_t i = 0; i < 3; ++i) {
      if (!given[i].second->empty()) {
        paths.per_split[i] = ParseList(given[i].first, *given[i].second);
      }
    }
  } else {
    throw DataError("no data: give --data-path PREFIX, --train-data-path PREFIX or --mock-data");
  }
  return paths;
}

}  // namespace muster::data
