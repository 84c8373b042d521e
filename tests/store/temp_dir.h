#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace muster::testing {

// A folder that goes with the test.
class TempDir {
 public:
  TempDir() {
    std::string name = std::filesystem::temp_directory_path() / "muster-test-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace muster::testing
