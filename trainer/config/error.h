#pragma once

#include <stdexcept>
#include <string>

// Why a rank ends. Every error that a user can cause or meet is one of these, thrown where it is
// found and caught once, in main, which writes the error record and exits with the code. Anything
// else that reaches main is a bug (exit 1).

namespace muster {

// The process's exit code; docs/exit-codes.md lists them for people.
enum class ExitCode : int {
  kOk = 0,
  kInternal = 1,
  kConfig = 64,
  kData = 65,
  kCuda = 70,
  kComm = 71,
  kNan = 72,
  kCheckpoint = 74,
  kSignalSaved = 75,  // SIGTERM: saved, then left
  kTerminated = 143,  // SIGTERM, and nowhere to save
};

class TrainerError : public std::runtime_error {
 public:
  TrainerError(ExitCode code, const char* kind, const std::string& message)
      : std::runtime_error(message), code_(code), kind_(kind) {}
  ExitCode code() const { return code_; }
  // One word for records and events: "config", "data" ...
  const char* kind() const { return kind_; }

 private:
  ExitCode code_;
  const char* kind_;
};

// A flag, a combination of flags, or the environment.
class ConfigError : public TrainerError {
 public:
  explicit ConfigError(const std::string& m) : TrainerError(ExitCode::kConfig, "config", m) {}
};

// A peer that is gone or late, or a rendezvous that failed.
class CommError : public TrainerError {
 public:
  explicit CommError(const std::string& m) : TrainerError(ExitCode::kComm, "comm", m) {}
};

// A loss or gradient that is not finite.
class NanError : public TrainerError {
 public:
  explicit NanError(const std::string& m) : TrainerError(ExitCode::kNan, "nan", m) {}
};

// A checkpoint or model folder that can't be written or read.
class CheckpointError : public TrainerError {
 public:
  explicit CheckpointError(const std::string& m)
      : TrainerError(ExitCode::kCheckpoint, "checkpoint", m) {}
};

}  // namespace muster
