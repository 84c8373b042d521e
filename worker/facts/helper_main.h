#pragma once

#include <string>

namespace muster::facts {

// The body of `musterd --answer-probe STATE_DIR FAKE_DEVICES KERNEL_LOG`: a Probe on stdin, its
// answer with a length before it on stdout, so that the reader need not wait for the end of the
// process. Never returns.
[[noreturn]] void RunProbeHelper(const std::string& state_dir, const std::string& fake_devices,
                                 const std::string& kernel_log);

// Bytes before the answer: its length, most significant first.
inline constexpr size_t kAnswerHeaderBytes = 4;

}  // namespace muster::facts
