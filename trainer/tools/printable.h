#pragma once

#include <string>
#include <string_view>

namespace muster::tools {

// `bytes`, a name of a file for instance, as UTF-8: what is not UTF-8 becomes \xNN, as in Python's
// "backslashreplace". So two names stay two.
std::string Printable(std::string_view bytes);

}  // namespace muster::tools
