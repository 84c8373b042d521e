#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

// Access to tests/golden for the data tests.

namespace muster::data::testing {

inline std::filesystem::path GoldenRoot() {
  const char* root = std::getenv("MUSTER_GOLDEN");
  return root != nullptr ? root : "tests/golden";
}

inline std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("open " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void WriteFile(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  if (!out.flush()) throw std::runtime_error("write " + path.string());
}

inline nlohmann::json ReadJson(const std::filesystem::path& path) {
  return nlohmann::json::parse(ReadFile(path));
}

// A temporary folder, removed at the end.
class TempFolder {
 public:
  explicit TempFolder(
      const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::string pattern = (parent / "muster_data_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
    path_ = pattern;
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Megatron's data files in one folder, the compressed ones unpacked.
class GoldenData {
 public:
  GoldenData() {
    for (const auto& entry :
         std::filesystem::directory_iterator(GoldenRoot() / "megatron" / "data")) {
      const auto to = folder_.path() / entry.path().filename();
      if (entry.path().extension() != ".gz") {
        std::filesystem::create_symlink(std::filesystem::absolute(entry.path()), to);
        continue;
      }
      const std::string command = "gzip -dc '" + entry.path().string() + "' > '" +
                                  std::filesystem::path(to).replace_extension().string() + "'";
      if (std::system(command.c_str()) != 0) throw std::runtime_error(command);
    }
  }
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  TempFolder folder_;
};

}  // namespace muster::data::testing
