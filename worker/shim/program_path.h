#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::shim {

// The files that executing `program` tries, in order, as execvp(3) does: a name with a slash is
// itself, another is looked for in each folder of `search_path` (an empty folder means the working
// directory). Relative results are relative to the working directory of the rank.
std::vector<std::string> ProgramCandidates(const std::string& program,
                                           std::string_view search_path);

// PATH for a rank whose environment has none.
inline constexpr char kDefaultPath[] =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

}  // namespace muster::shim
