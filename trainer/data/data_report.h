#pragma once

#include <functional>
#include <string>

namespace muster::data {

// What is to be said while data is opened; called from any thread, one line each.
struct DataReport {
  // About the run as a whole: the same on every rank, so one may say it for all.
  std::function<void(const std::string&)> note = [](const std::string&) {};
  // About this process or its disk.
  std::function<void(const std::string&)> warn = [](const std::string&) {};
};

}  // namespace muster::data
