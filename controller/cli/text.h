#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "controller/engine/text.h"

// Bytes, times and numbers as text for people. Pure.

namespace muster::cli {

// What ranks write may hold anything. The result is valid UTF-8 in which a terminal finds nothing
// to obey but colours: control characters and bytes that are not UTF-8 become \xNN (the bytes they
// were). TAB and SGR sequences (ESC [ ... m) stay, with a reset at the end when there were any.
std::string EscapeForDisplay(std::string_view bytes);

// Columns on a terminal: code points, without SGR sequences. East Asian wide characters count one.
size_t DisplayWidth(std::string_view utf8);

using engine::FormatDuration;

// "2026-11-29 12:00:03" in local time; "-" for 0.
std::string FormatTime(int64_t realtime_ns);

// "2026-11-29 12:00:03.123456" in local time; as wide for 0, which is unknown.
std::string FormatMoment(int64_t realtime_ns);

// "SIGKILL"; "signal 99" when it has no name.
std::string SignalName(int signal);

// "1 rank", "2 ranks".
std::string Count(uint64_t n, std::string_view noun);

}  // namespace muster::cli
