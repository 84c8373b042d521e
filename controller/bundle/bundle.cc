#include "controller/bundle/bundle.h"

#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "common/for_each_item.h"
#include "common/status.h"
#include "controller/bundle/libraries.h"
#include "controller/bundle/run_program.h"

namespace muster::bundle {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrograms[] = {"muster-train", "muster-preprocess", "muster-commtest"};
constexpr char kFromPrograms[] = "$ORIGIN/../lib";
constexpr char kFromLibraries[] = "$ORIGIN";

absl::Status Copy(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::copy_file(from, to, error);  // follows links: the file itself, under the name it is asked for
  if (error) return absl::InternalError("copy " + from.string() + ": " + error.message());
  fs::permissions(to, fs::perms::owner_write, fs::perm_options::add, error);
  return absl::OkStatus();
}

// Name -> file, of everything that the program needs.
absl::Status Collect(const fs::path& program, bool cpu, std::map<std::string, fs::path>& found) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, RunProgram({"ldd", program}));
  for (const Library& library : ParseLdd(text)) {
    if (IsOfTheSystem(library.name)) continue;
    if (library.path.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          program.string(), " needs ", library.name,
          ", which the loader does not find here: is the build complete, or does LD_LIBRARY_PATH "
          "miss a folder?"));
    }
    found.emplace(library.name, library.path);
    for (const std::string& later : cpu ? std::vector<std::string>() : LoadedLater(library.name)) {
      // Beside the file, and beside what its name is a link to.
      std::error_code error;
      const fs::path real = fs::canonical(library.path, error);
      if (error) return absl::InternalError(library.path + ": " + error.message());
      for (const fs::path& folder : {fs::path(library.path).parent_path(), real.parent_path()}) {
        error = ForEachItem(folder, [&](const fs::path& path) {
          const std::string name = path.filename().string();
          if (name.starts_with(later) && name.find(".so.") != std::string::npos &&
              name.find(".alt.") == std::string::npos)
            found.emplace(name, path);
        });
        if (error) return absl::InternalError(folder.string() + ": " + error.message());
      }
    }
  }
  return absl::OkStatus();
}

// Makes the file look in `folder` for what it needs, if it does not yet.
absl::Status LookIn(const fs::path& file, const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(std::string now, RunProgram({"patchelf", "--print-rpath", file}));
  if (!now.empty() && now.back() == '\n') now.pop_back();
  if (absl::StrCat(":", now, ":").find(absl::StrCat(":", folder, ":")) != std::string::npos &&
      folder == kFromLibraries) {
    return absl::OkStatus();  // LibTorch's and NVIDIA's own do
  }
  return RunProgram({"patchelf", "--set-rpath", folder, file}).status();
}

absl::Status Fill(const Options& options, const fs::path& tree) {
  std::error_code error;
  fs::create_directories(tree / "lib", error);
  fs::create_directories(tree / "bin", error);
  if (error) return absl::InternalError("make " + tree.string() + ": " + error.message());
  std::map<std::string, fs::path> libraries;
  for (const char* name : kPrograms) {
    const fs::path program = fs::path(options.programs) / name;
    if (!fs::exists(program, error)) {
      if (std::string_view(name) == "muster-train") {
        return absl::FailedPreconditionError(program.string() +
                                             " is not there: build the trainer first");
      }
      continue;
    }
    MUSTER_RETURN_IF_ERROR(Collect(program, options.cpu, libraries));
    MUSTER_RETURN_IF_ERROR(Copy(program, tree / "bin" / name));
    MUSTER_RETURN_IF_ERROR(LookIn(tree / "bin" / name, kFromPrograms));
  }
  for (const auto& [name, path] : libraries) {
    MUSTER_RETURN_IF_ERROR(Copy(path, tree / "lib" / name));
    MUSTER_RETURN_IF_ERROR(LookIn(tree / "lib" / name, kFromLibraries));
  }
  return absl::OkStatus();
}

// Starts every program where the tree lies now, with nothing of this machine's environment, and
// looks where its libraries come from.
absl::Status Try(const fs::path& tree) {
  std::error_code error;
  const std::string inside = fs::canonical(tree, error).string() + "/";
  std::vector<std::string> programs;
  if (!error) {
    error =
        ForEachItem(tree / "bin", [&](const fs::path& path) { programs.push_back(path.string()); });
  }
  if (error) return absl::InternalError("list " + tree.string() + ": " + error.message());
  for (const std::string& program : programs) {
    MUSTER_RETURN_IF_ERROR(RunProgram({program, "--version"}, std::vector<std::string>()).status());
    MUSTER_ASSIGN_OR_RETURN(
        const std::string text,
        RunProgram({"ldd", program}, std::vector<std::string>{"PATH=/usr/bin:/bin"}));
    for (const Library& library : ParseLdd(text)) {
      if (IsOfTheSystem(library.name)) continue;
      const std::string path = fs::canonical(library.path, error).string();
      if (!error && path.starts_with(inside)) continue;
      return absl::InternalError(absl::StrCat(program, " takes ", library.name, " from '",
                                              library.path, "' instead of from the bundle"));
    }
  }
  return absl::OkStatus();
}

std::vector<Part> Measure(const fs::path& tree) {
  std::map<std::string, Part> parts;
  std::error_code error;
  for (fs::recursive_directory_iterator item(tree, error), end; !error && item != end;
       item.increment(error)) {
    std::error_code unknown;
    if (!item->is_regular_file(unknown)) continue;
    const uintmax_t bytes = item->file_size(unknown);
    if (unknown) continue;
    const std::string name = PartOf(item->path().filename().string());
    Part& part = parts[name];
    part.name = name;
    part.bytes += bytes;
    ++part.files;
  }
  std::vector<Part> sorted;
  sorted.reserve(parts.size());
  for (auto& [name, part] : parts) sorted.push_back(std::move(part));
  std::sort(sorted.begin(), sorted.end(),
            [](const Part& a, const Part& b) { return a.bytes > b.bytes; });
  return sorted;
}

// Removes the folder unless it was kept.
class Scratch {
 public:
  explicit Scratch(fs::path path) : path_(std::move(path)) {}
  ~Scratch() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  const fs::path& path() const { return path_; }

 private:
  const fs::path path_;
};

}  // namespace

absl::StatusOr<std::vector<Part>> MakeBundle(const Options& options) {
  const fs::path output = options.output;
  std::error_code error;
  if (fs::exists(fs::symlink_status(output, error))) {
    return absl::AlreadyExistsError(output.string() +
                                    " is there already: remove it, or give another --output");
  }
  const bool archive = output.string().ends_with(".tar.zst");
  const Scratch scratch(absl::StrCat(output.string(), ".making.", getpid()));
  const fs::path made = scratch.path() / "made";
  const fs::path moved = scratch.path() / "moved";
  MUSTER_RETURN_IF_ERROR(Fill(options, made));
  fs::rename(made, moved, error);
  if (error) return absl::InternalError("move " + made.string() + ": " + error.message());
  MUSTER_RETURN_IF_ERROR(Try(moved));
  std::vector<Part> parts = Measure(moved);
  if (!archive) {
    fs::rename(moved, output, error);
    if (error) return absl::InternalError("move to " + output.string() + ": " + error.message());
    return parts;
  }
  const std::string file = (scratch.path() / "archive").string();
  MUSTER_RETURN_IF_ERROR(
      RunProgram({"tar", "-C", moved, "--use-compress-program=zstd -T0", "-cf", file, "."})
          .status());
  fs::rename(file, output, error);
  if (error) return absl::InternalError("move to " + output.string() + ": " + error.message());
  return parts;
}

}  // namespace muster::bundle
