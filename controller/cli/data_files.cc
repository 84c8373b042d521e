#include "controller/cli/data_files.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace muster::cli {
namespace {

// Bytes of a token by the dtype code of an .idx file (docs/formats.md); 0 = no such code.
constexpr std::array<uint64_t, 9> kTokenBytes = {0, 1, 1, 2, 4, 8, 8, 4, 2};

// The dtype stands after the magic (9 bytes) and the version (8).
uint64_t TokenBytes(const std::string& index_path) {
  constexpr size_t kHeader = 18;
  constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
  std::array<char, kHeader> header{};
  std::ifstream in(index_path, std::ios::binary);
  if (!in.read(header.data(), header.size())) return 0;
  if (std::string_view(header.data(), kMagic.size()) != kMagic) return 0;
  const auto code = static_cast<unsigned char>(header.back());
  return code < kTokenBytes.size() ? kTokenBytes[code] : 0;
}

}  // namespace

std::vector<plan::DataFile> FindDataFiles(const std::vector<std::string>& prefixes,
                                          const std::string& working_dir) {
  std::vector<plan::DataFile> out;
  for (const std::string& prefix : prefixes) {
    const std::string path = (std::filesystem::path(working_dir) / prefix).string();
    const uint64_t token_bytes = TokenBytes(path + ".idx");
    std::error_code error;
    const uint64_t bytes = std::filesystem::file_size(path + ".bin", error);
    if (token_bytes == 0 || error) continue;
    out.push_back({prefix, bytes / token_bytes});
  }
  return out;
}

}  // namespace muster::cli
