#include "common/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <memory>

namespace muster::log {
namespace {

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

void Init(std::string_view program, const std::string& path, Level level) {
  std::shared_ptr<spdlog::logger> logger;
  const std::string name(program);
  if (path.empty()) {
    logger = spdlog::stderr_logger_mt(name);
  } else {
    logger = spdlog::basic_logger_mt(name, path);
    logger->flush_on(spdlog::level::info);
  }
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %n[%P] %l: %v");
  logger->set_level(ToSpdlog(level));
  if (const char* wanted = std::getenv("MUSTER_LOG")) {
    logger->set_level(spdlog::level::from_str(wanted));
  }
  spdlog::set_default_logger(logger);
}

void Write(Level level, std::string_view message) {
  spdlog::log(ToSpdlog(level), message);
}

}  // namespace muster::log
