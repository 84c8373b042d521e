#pragma once

#include <string>

#include "common/unique_fd.h"
#include "trainer/data/data_report.h"

namespace muster::data {

// While it lives, no other CacheLock on the same path does, in this process or another one of this
// host (of every host where the file system shares locks). The file is gone afterwards. A file
// system without locks gives none: then work is done twice, never wrong. Throws DataError when the
// file can't be made.
class CacheLock {
 public:
  // Waits; says so once when it has to.
  CacheLock(std::string path, const DataReport& report);
  ~CacheLock();
  CacheLock(const CacheLock&) = delete;
  CacheLock& operator=(const CacheLock&) = delete;

 private:
  std::string path_;
  UniqueFd fd_;
};

}  // namespace muster::data
