#include "trainer/loop/error_record.h"

#include <c10/util/Exception.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "trainer/checkpoint/safetensors.h"
#include "trainer/data/data_error.h"
#include "trainer/tokenizer/tokenizer.h"

namespace muster::loop {

Failure CurrentFailure() {
  try {
    throw;
  } catch (const TrainerError& error) {
    return {error.code(), error.kind(), error.what()};
  } catch (const data::DataError& error) {
    return {ExitCode::kData, "data", error.what()};
  } catch (const tokenizer::TokenizerError& error) {
    return {ExitCode::kData, "data", error.what()};
  } catch (const checkpoint::SafetensorsError& error) {
    return {ExitCode::kCheckpoint, "checkpoint", error.what()};
  } catch (const c10::Error& error) {
    return {ExitCode::kInternal, "internal", error.what_without_backtrace()};
  } catch (const std::exception& error) {
    return {ExitCode::kInternal, "internal", error.what()};
  } catch (...) {
    return {ExitCode::kInternal, "internal", "unknown exception"};
  }
}

std::string ErrorRecord(const Failure& failure, int64_t rank, int64_t seconds_since_epoch) {
  nlohmann::ordered_json extra;
  extra["py_callstack"] = failure.message;  // what torchrun shows as the traceback
  extra["timestamp"] = std::to_string(seconds_since_epoch);
  extra["rank"] = rank;
  extra["kind"] = failure.kind;
  nlohmann::ordered_json message;
  message["message"] = failure.kind + ": " + failure.message;
  message["errorCode"] = static_cast<int>(failure.code);
  message["extraInfo"] = extra;
  nlohmann::ordered_json record;
  record["message"] = message;
  return record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void WriteErrorRecord(const std::string& path, const std::string& record) {
  if (path.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  std::ofstream(path) << record;
}

}  // namespace muster::loop
