#pragma once

#include <string>
#include <string_view>

// The daemons' own log: one facade, so that spdlog is compiled once. Messages go to stderr, or to a
// file for a daemon in the background. Ranks' output never passes through here. Any thread.

namespace muster::log {

enum class Level { kDebug, kInfo, kWarning, kError };

// Once, early in main. An empty path means stderr. `MUSTER_LOG=debug|info|warning|error` overrides
// the level.
void Init(std::string_view program, const std::string& path = "", Level level = Level::kInfo);

void Write(Level level, std::string_view message);

inline void Debug(std::string_view message) {
  Write(Level::kDebug, message);
}
inline void Info(std::string_view message) {
  Write(Level::kInfo, message);
}
inline void Warning(std::string_view message) {
  Write(Level::kWarning, message);
}
inline void Error(std::string_view message) {
  Write(Level::kError, message);
}

}  // namespace muster::log
