#pragma once

#include <cstdint>
#include <string>

#include "trainer/config/error.h"

namespace muster::loop {

// Why this rank failed.
struct Failure {
  ExitCode code = ExitCode::kInternal;
  std::string kind = "internal";  // one word
  std::string message;
};

// The failure behind the exception being handled; call it in a catch block.
Failure CurrentFailure();

// The JSON record that torchrun and Muster read from TORCHELASTIC_ERROR_FILE, in torchrun's shape.
std::string ErrorRecord(const Failure& failure, int64_t rank, int64_t seconds_since_epoch);

// Writes it; does nothing without a path or when the file can't be written (the exit code still
// tells).
void WriteErrorRecord(const std::string& path, const std::string& record);

}  // namespace muster::loop
