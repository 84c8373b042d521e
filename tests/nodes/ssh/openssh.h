#pragma once

#include <stdlib.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

// The programs of the installed OpenSSH, and files for them.

namespace muster::nodes::ssh {

namespace fs = std::filesystem;

class TemporaryFolder {
 public:
  TemporaryFolder() : path_(mkdtemp(name_.data())) {}
  ~TemporaryFolder() { fs::remove_all(path_); }
  void Write(const std::string& file, const std::string& text) const {
    std::ofstream(path_ + "/" + file) << text;
    chmod((path_ + "/" + file).c_str(), 0600);
  }
  const std::string& path() const { return path_; }

 private:
  std::string name_ = "/tmp/muster_ssh_XXXXXX";
  const std::string path_;
};

// What a program prints; nothing if it fails.
inline std::optional<std::string> Output(const std::string& command) {
  FILE* pipe = popen((command + " 2>/dev/null").c_str(), "re");
  std::string text;
  char buffer[4096];
  for (size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  if (pclose(pipe) != 0) return std::nullopt;
  return text;
}

}  // namespace muster::nodes::ssh
