#pragma once

#include <cstdint>
#include <string>

// What stands in a log where bytes of a rank are missing, so that nobody takes two ends for one
// line.
//
//   [muster: 1048576 bytes of this output were lost here: <why>]
//
// On a line of its own; among JSON lines it is one: {"muster":"lost","bytes":1048576,"why":"..."}.

namespace muster {

inline std::string LossMarker(uint64_t bytes, std::string why, bool at_line_begin, bool json) {
  for (char& c : why) {
    const bool plain = c >= ' ' && c < 127 && c != '"' && c != '\\';
    if (!plain) c = '?';
  }
  const std::string start = at_line_begin ? "" : "\n";
  if (json) {
    return start + "{\"muster\":\"lost\",\"bytes\":" + std::to_string(bytes) + ",\"why\":\"" + why +
           "\"}\n";
  }
  return start + "[muster: " + std::to_string(bytes) +
         " bytes of this output were lost here: " + why + "]\n";
}

}  // namespace muster
