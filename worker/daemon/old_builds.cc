#include "worker/daemon/old_builds.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include "common/for_each_item.h"

namespace muster::worker {
namespace {

namespace fs = std::filesystem;

constexpr size_t kChecksumDigits = 64;

bool IsBuild(std::string_view name) {
  return name.size() == kChecksumDigits &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Where `program` lies, if it was pushed.
std::optional<fs::path> PushedBuild(const std::string& program) {
  const fs::path own = fs::path(program).parent_path();
  if (!IsBuild(own.filename().native()) || own.parent_path().filename() != "bin") {
    return std::nullopt;
  }
  return own;
}

// Folders of the programs that run; those of other users cannot be seen, and are not in our folder.
std::set<fs::path> FoldersInUse() {
  std::set<fs::path> folders;
  ForEachItem("/proc", [&](const fs::path& process) {
    std::error_code error;
    const fs::path program = fs::read_symlink(process / "exe", error);
    if (!error) folders.insert(program.parent_path());
  });
  return folders;
}

}  // namespace

void NoteBuildUse(const std::string& program) {
  if (const auto own = PushedBuild(program)) utimensat(AT_FDCWD, own->c_str(), nullptr, 0);
}

void TidyBuilds(const std::string& program, std::chrono::seconds unused) {
  const auto own = PushedBuild(program);
  if (!own) return;
  NoteBuildUse(program);
  const std::set<fs::path> in_use = FoldersInUse();
  ForEachItem(own->parent_path(), [&](const fs::path& path) {
    const std::string name = path.filename();
    const bool leftover = name.starts_with(".push-");
    if (path == *own || in_use.contains(path) || (!leftover && !IsBuild(name))) return;
    struct stat info;
    if (lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return;
    if (std::time(nullptr) - info.st_mtime < unused.count()) return;
    std::error_code error;
    fs::remove_all(path, error);
  });
}

}  // namespace muster::worker
