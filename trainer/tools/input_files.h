#pragma once

#include <string>
#include <vector>

namespace muster::tools {

// The files that `--input` names, in the order of the words; "-" is stdin. A word that is no file
// but holds *, ? or [ stands for the files that match it (as in Python's glob), in the order of
// their names, so that the output does not depend on how a file system lists a folder. Throws
// data::DataError: nothing matches; a file that is named twice is no error.
std::vector<std::string> ExpandInputs(const std::vector<std::string>& words);

}  // namespace muster::tools
