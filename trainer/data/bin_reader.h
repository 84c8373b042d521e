#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace muster::data {

// The bytes of one file at any place. Constructed, then immutable: any thread.
class BinReader {
 public:
  virtual ~BinReader() = default;

  virtual int64_t size() const = 0;
  // Bytes offset .. offset+count, within size(). The result lies in the file's mapping or in
  // `buffer`. Throws DataError with path and offset when they can't be read.
  virtual const uint8_t* Fetch(int64_t offset, int64_t count,
                               std::vector<uint8_t>& buffer) const = 0;
  // Asks the processor for the first of these bytes, where they are mapped. Never fails, never
  // waits.
  virtual void Touch(int64_t offset, int64_t count) const = 0;
  // Asks the system to read these bytes from disk. Never fails, never waits.
  virtual void Prefetch(int64_t offset, int64_t count) const = 0;
};

// Maps the file: no copy, no system call a read; the file must not shrink while it is open. Throws
// DataError.
std::unique_ptr<BinReader> MapBin(const std::string& path);
// Reads with pread: for file systems where mappings are slow or a file may be cut under them.
std::unique_ptr<BinReader> OpenBin(const std::string& path);

}  // namespace muster::data
