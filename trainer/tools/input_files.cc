#include "trainer/tools/input_files.h"

#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "trainer/data/data_error.h"

namespace muster::tools {
namespace {

std::vector<std::string> Matches(const std::string& pattern) {
  glob_t found{};
  const int status = ::glob(pattern.c_str(), GLOB_NOESCAPE, nullptr, &found);
  std::vector<std::string> names(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (status != 0) {
    throw data::DataError("--input " + pattern + ": " +
                          (status == GLOB_NOMATCH ? "no file matches" : std::strerror(errno)));
  }
  std::sort(names.begin(), names.end());  // by bytes, whatever the locale
  return names;
}

}  // namespace

std::vector<std::string> ExpandInputs(const std::vector<std::string>& words) {
  std::vector<std::string> files;
  for (const std::string& word : words) {
    if (word.find_first_of("*?[") == std::string::npos || ::access(word.c_str(), F_OK) == 0) {
      files.push_back(word);
      continue;
    }
    for (std::string& name : Matches(word)) files.push_back(std::move(name));
  }
  return files;
}

}  // namespace muster::tools
