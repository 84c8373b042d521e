#pragma once

#include <string_view>

// The patterns of ssh_config(5) and known_hosts. Pure.

namespace muster::nodes::ssh {

// * is any text, ? any character.
bool MatchPattern(std::string_view text, std::string_view pattern);

enum class ListMatch { kNo, kYes, kNegated };
// Patterns with commas between; one with ! before it that matches makes the whole list fail.
ListMatch MatchPatternList(std::string_view text, std::string_view list);
// The same without regard to case.
ListMatch MatchHostList(std::string_view host, std::string_view list);

}  // namespace muster::nodes::ssh
