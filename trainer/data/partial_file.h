#pragma once

#include <cstdint>
#include <string>

#include "common/unique_fd.h"

namespace muster::data {

// A file under the temporary name PATH.tmp beside its final one, held for writing by one process.
// Removed on destruction unless it was published or is kept. One thread. Throws DataError with the
// path and the reason (no space, no permission, in use).
class PartialFile {
 public:
  // `resume_at`: starts with so many bytes of what an interrupted run left there, and is kept.
  explicit PartialFile(std::string final_path, int64_t resume_at = -1);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  void Write(const void* data, size_t size);
  // Appends all of the open file `fd` of `size` bytes, named `name` in messages.
  void AppendFile(int fd, int64_t size, const std::string& name);
  // Reads from byte `offset` of what was written; short only at the end.
  size_t ReadAt(int64_t offset, void* data, size_t size) const;
  int64_t size() const { return size_; }
  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }

  // Makes what was written durable, with the temporary name.
  void Sync();
  // Makes it durable and gives it its final name, durably.
  void Publish();
  // Whether destruction leaves the temporary file for a later run.
  void Keep(bool keep) { keep_ = keep; }

  // The temporary name of a file.
  static std::string TemporaryPath(const std::string& final_path) { return final_path + ".tmp"; }
  // Whether there is a file under the temporary name.
  static bool HasLeftover(const std::string& final_path);
  // Throws unless an interrupted run left the file, under its temporary or already under its final
  // name, with exactly `size` bytes.
  static void CheckLeftover(const std::string& final_path, int64_t size);
  // Checks this and gives the file its final name, if it has not got it yet.
  static void PublishLeftover(const std::string& final_path, int64_t size);

 private:
  // A temporary file that no other process holds.
  void OpenLocked();

  std::string final_path_;
  std::string path_;
  UniqueFd fd_;
  int64_t size_ = 0;
  int64_t given_to_disk_ = 0;  // bytes from the start that the disk was told to write
  bool keep_ = false;
  bool name_synced_ = false;
};

}  // namespace muster::data
