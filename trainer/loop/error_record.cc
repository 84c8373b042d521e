#include "trainer/loop/error_record.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace muster::loop {

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
