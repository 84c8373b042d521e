#pragma once

#include <string>

namespace muster::stage {

// main() of `musterd --stage`: one transfer. Orders come on stdin, reports go to stdout, each as a
// frame (frame.h); ends with the daemon that started it, whatever hangs.
[[noreturn]] void RunStageHelper(const std::string& state_dir);

}  // namespace muster::stage
