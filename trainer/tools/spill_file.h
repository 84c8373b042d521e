#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "common/unique_fd.h"

namespace muster::tools {

// Bytes that shall not stay in memory: a file without a name. One thread at a time. Throws
// data::DataError.
class SpillFile {
 public:
  explicit SpillFile(const std::string& folder);

  void Write(std::span<const uint8_t> bytes);
  void Truncate(int64_t size);
  int64_t size() const { return size_; }
  int fd() const { return fd_.get(); }
  const std::string& name() const { return name_; }  // for messages

 private:
  std::string name_;
  UniqueFd fd_;
  int64_t size_ = 0;
};

}  // namespace muster::tools
