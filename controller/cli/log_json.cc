#include "controller/cli/log_json.h"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "common/utf8.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/text.h"

namespace muster::cli {
void LogJson::Emit(const LogLine& line) {
  nlohmann::ordered_json out;
  out["rank"] = line.rank;
  out["host"] = line.host;
  out["stream"] = StreamName(line.stream);
  if (line.attempt > 0) out["attempt"] = line.attempt;
  out["offset"] = line.offset;
  if (line.time_ns != 0) out["time_ns"] = line.time_ns;
  out["text"] = ToValidUtf8(line.text);
  if (!IsValidUtf8(line.text)) {
    std::string hex;
    for (const unsigned char c : line.text) fmt::format_to(std::back_inserter(hex), "{:02x}", c);
    out["hex"] = std::move(hex);
  }
  if (line.partial) out["partial"] = true;
  write_(out.dump() + "\n");
}

}  // namespace muster::cli
