#pragma once

#include <optional>
#include <string_view>

#include "controller/plan/toml_value.h"

namespace muster::plan {

// Where the first non-ASCII character outside strings and comments is. TOML allows none there;
// toml++ 3.3 runs into undefined behaviour on some (its tables of Unicode white space), so that
// they must be found before it sees them.
std::optional<Position> FindForeignCharacter(std::string_view text);

}  // namespace muster::plan
