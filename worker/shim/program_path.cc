#include "worker/shim/program_path.h"

namespace muster::shim {

std::vector<std::string> ProgramCandidates(const std::string& program,
                                           std::string_view search_path) {
  if (program.find('/') != std::string::npos || program.empty()) return {program};
  std::vector<std::string> candidates;
  size_t begin = 0;
  while (begin <= search_path.size()) {
    const size_t end = std::min(search_path.find(':', begin), search_path.size());
    const std::string_view folder = search_path.substr(begin, end - begin);
    candidates.push_back(folder.empty() ? "./" + program : std::string(folder) + "/" + program);
    begin = end + 1;
  }
  return candidates;
}

}  // namespace muster::shim
