#include "worker/facts/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "common/unique_fd.h"
#include "worker/facts/file_sum.h"
#include "worker/shim/program_path.h"

namespace muster::facts {
namespace {

std::string ErrnoText() {
  return std::strerror(errno);
}

const char* KindOf(mode_t mode) {
  return S_ISDIR(mode)    ? "a folder"
         : S_ISFIFO(mode) ? "a pipe"
         : S_ISSOCK(mode) ? "a socket"
                          : "a device";
}

std::string Parent(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

}  // namespace

std::string WorkingDirError(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return "working folder " + path + ": " + ErrnoText();
  if (!S_ISDIR(info.st_mode)) return "working folder " + path + " is not a folder";
  if (access(path.c_str(), X_OK) != 0) return "working folder " + path + ": " + ErrnoText();
  return "";
}

ResolvedProgram ResolveProgram(const std::string& program, const std::string& working_dir,
                               const Environment& environment) {
  std::string search = ValueOf(environment, "PATH");
  if (search.empty()) search = shim::kDefaultPath;
  std::string reason = "No such file or directory";
  for (const std::string& candidate : shim::ProgramCandidates(program, search)) {
    std::string path = candidate;
    if (!path.starts_with("/")) path.insert(0, working_dir + "/");
    struct stat info;
    if (stat(path.c_str(), &info) != 0) {
      if (errno != ENOENT && errno != ENOTDIR) reason = ErrnoText();
    } else if (S_ISDIR(info.st_mode)) {
      reason = "it is a folder";
    } else if (access(path.c_str(), X_OK) != 0) {
      reason = ErrnoText() + " (make it executable: chmod +x " + path + ")";
    } else {
      return {path, ""};
    }
  }
  std::string where;
  if (program.find('/') == std::string::npos) where = " in PATH=" + search;
  return {"", "program " + program + where + ": " + reason};
}

v1::FileFact LookAtFile(const std::string& path, uint64_t whole_limit) {
  v1::FileFact fact;
  fact.set_path(path);
  struct stat info;
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd || fstat(fd.get(), &info) != 0) {
    fact.set_error(path + ": " + ErrnoText());
  } else if (S_ISREG(info.st_mode)) {
    fact.set_size(static_cast<uint64_t>(info.st_size));
    fact.set_sum(FileSum(fd.get(), fact.size(), whole_limit));
    if (fact.sum().empty()) {
      fact.set_error(path + ": can't be read: " +
                     (errno == 0 ? "it ends before its size, is it being written?" : ErrnoText()));
    }
  }
  return fact;
}

v1::FileFact LookAtRequired(const std::string& path, uint64_t whole_limit) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return LookAtFile(path, whole_limit);
  v1::FileFact fact;
  // Python runs a folder with the first, a tokenizer may be a folder with the second.
  for (const char* name : {"/__main__.py", "/tokenizer.json"}) {
    if (fact.sum().empty()) fact = LookAtFile(path + name, whole_limit);
  }
  if (fact.sum().empty()) {
    fact.Clear();
    fact.set_error(path + " is " + KindOf(info.st_mode) + ", not a file");
  }
  fact.set_path(path);
  return fact;
}

v1::FolderFact LookAtFolder(const std::string& path) {
  v1::FolderFact fact;
  fact.set_path(path);
  std::string at = path;
  struct stat info;
  while (stat(at.c_str(), &info) != 0 && errno == ENOENT && at != "/") at = Parent(at);
  struct statvfs fs;
  if (stat(at.c_str(), &info) != 0 || statvfs(at.c_str(), &fs) != 0) {
    fact.set_error(at + ": " + ErrnoText());
    return fact;
  }
  fact.set_free_bytes(static_cast<uint64_t>(fs.f_bavail) * fs.f_frsize);
  fact.set_total_bytes(static_cast<uint64_t>(fs.f_blocks) * fs.f_frsize);
  if (!S_ISDIR(info.st_mode)) {
    fact.set_error(at + " is not a folder");
  } else if (access(at.c_str(), W_OK | X_OK) != 0) {
    fact.set_error(at + ": " + ErrnoText());
  }
  return fact;
}

}  // namespace muster::facts
