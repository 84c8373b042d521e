#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/v1/job.pb.h"

// Hostfile text -> Inventory. Pure; the grammar is docs/hostfile.md.

namespace muster::hostfile {

struct Error {
  uint32_t line = 0;        // from 1; 0 = the whole file
  std::string message;      // what is wrong and how to fix it, without the location
  uint32_t other_line = 0;  // the earlier line of a duplicate
};

struct Result {
  v1::Inventory inventory;    // empty when there are errors
  std::vector<Error> errors;  // in file order, at most 20
  bool ok() const { return errors.empty(); }
};

// The bytes of a hostfile.
Result ParseHostfile(std::string_view bytes);

// A `--host` list: HOST[:SLOTS],... Errors count items.
Result ParseHostList(std::string_view list);

// Reads and parses a file; an unreadable one is an error on line 0 that names the path. Sets
// inventory.source.
Result ReadHostfile(const std::string& path);

// "path:line: message" for each error, one a line; without ":line" for an error of the whole file.
std::string FormatErrors(const std::string& source, const std::vector<Error>& errors);

// {"hosts":[...],"warnings":[...]}, or {"error":{"line":n,"message":"..."}} with the first error
// (and "other_line" for a duplicate). One line, no newline at its end.
std::string ToJson(const Result& result);

}  // namespace muster::hostfile
