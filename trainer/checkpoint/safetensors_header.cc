#include "trainer/checkpoint/safetensors_header.h"

#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

namespace muster::checkpoint {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxInteger = uint64_t{1} << 53;  // what every JSON implementation reads exactly

[[noreturn]] void Fail(const std::string& tensor, const std::string& reason) {
  throw std::invalid_argument("tensor '" + tensor + "': " + reason);
}

uint64_t Unsigned(const json& value, const std::string& tensor, const char* what) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > kMaxInteger) {
    Fail(tensor, std::string(what) + " must hold integers from 0 to 2^53");
  }
  return value.get<uint64_t>();
}

HeaderEntry ParseEntry(const std::string& name, const json& value) {
  if (!value.is_object()) Fail(name, "expected an object with dtype, shape and data_offsets");
  HeaderEntry entry;
  bool dtype = false, shape = false, offsets = false;
  for (const auto& [key, field] : value.items()) {
    if (key == "dtype") {
      if (!field.is_string()) Fail(name, "dtype must be a string");
      entry.dtype = field.get<std::string>();
      dtype = true;
    } else if (key == "shape") {
      if (!field.is_array()) Fail(name, "shape must be an array");
      for (const auto& n : field) {
        entry.shape.push_back(static_cast<int64_t>(Unsigned(n, name, "shape")));
      }
      shape = true;
    } else if (key == "data_offsets") {
      if (!field.is_array() || field.size() != 2) Fail(name, "data_offsets must be [begin, end]");
      entry.begin = Unsigned(field[0], name, "data_offsets");
      entry.end = Unsigned(field[1], name, "data_offsets");
      if (entry.begin > entry.end) Fail(name, "data_offsets end before they begin");
      offsets = true;
    } else {
      Fail(name, "unknown field '" + key + "'");
    }
  }
  if (!dtype || !shape || !offsets) Fail(name, "needs dtype, shape and data_offsets");
  return entry;
}

// Refuses a second use of a name: JSON parsers disagree on which one counts.
json ParseWithoutDuplicates(std::string_view text) {
  std::set<std::string> names;
  const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::key && depth == 1 &&
        !names.insert(parsed.get<std::string>()).second) {
      Fail(parsed.get<std::string>(), "named twice");
    }
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), check);
  } catch (const json::exception& e) {
    throw std::invalid_argument(std::string("header is not JSON: ") + e.what());
  }
}

}  // namespace

Header ParseHeader(std::string_view text) {
  const json root = ParseWithoutDuplicates(text);
  if (!root.is_object()) throw std::invalid_argument("header must be a JSON object");
  Header header;
  for (const auto& [name, value] : root.items()) {
    if (name != "__metadata__") {
      header.tensors.emplace(name, ParseEntry(name, value));
      continue;
    }
    if (!value.is_object()) throw std::invalid_argument("__metadata__ must be an object");
    for (const auto& [key, field] : value.items()) {
      if (!field.is_string()) {
        throw std::invalid_argument("__metadata__ '" + key + "' must be a string");
      }
      header.metadata.emplace(key, field.get<std::string>());
    }
  }
  return header;
}

}  // namespace muster::checkpoint
