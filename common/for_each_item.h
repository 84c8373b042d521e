#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace muster {

// Calls `visit` with the path of each item of a folder, in any order. No exception, as a
// range-based for over a directory_iterator throws when a folder can't be read to its end; the
// result says why it ended early. Blocking; any thread.
template <typename Visit>
std::error_code ForEachItem(const std::string& folder, const Visit& visit) {
  std::error_code error;
  for (std::filesystem::directory_iterator item(folder, error), end; !error && item != end;
       item.increment(error)) {
    visit(item->path());
  }
  return error;
}

}  // namespace muster
