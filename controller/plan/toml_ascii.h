#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "controller/plan/toml_value.h"

namespace muster::plan {

// TOML allows non-ASCII characters only in strings and comments. toml++ 3.3 runs into undefined
// behaviour on some elsewhere (its tables of Unicode white space), so that they must be found
// before it sees them.

// Where the first one outside strings and comments is. Exact for a text that is TOML but for such
// characters: in another one a quote may stand where no string begins.
std::optional<Position> FindForeignCharacter(std::string_view text);

// The text with an "x" for each non-ASCII character. If this is no TOML, the text is none either.
std::string WithoutForeignCharacters(std::string_view text);

}  // namespace muster::plan
