#pragma once

#include <cstdint>
#include <string>

namespace muster::bench {

inline constexpr int64_t kVocabulary = 128256;

// A folder of its own below `parent`, removed at the end. Throws std::runtime_error.
class WorkFolder {
 public:
  explicit WorkFolder(const std::string& parent);
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Random tokens of four bytes in documents of 100 to 3000 of them, each ended by the last id.
void MakeTextDataset(const std::string& prefix, int64_t megabytes);

// Documents of one token each: the index is written in full, 20 bytes a document; the tokens are a
// hole in the file.
void MakeUniformDataset(const std::string& prefix, int64_t documents);

// Nothing of the file stays in memory.
void DropFromPageCache(const std::string& path);

}  // namespace muster::bench
