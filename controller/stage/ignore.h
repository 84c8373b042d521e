#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::stage {

// What is left out of a staged tree: patterns as in .gitignore, one a line. The last that fits
// decides; `!` takes a path in again; a pattern with a slash inside or in front means a path below
// the root, others any name; a slash at the end means folders alone; `*` and `?` stop at slashes,
// `**` does not. What lies in a left-out folder is left out. Pure.
class IgnoreRules {
 public:
  // Version control and caches: .git/, .hg/, .svn/, __pycache__/, *.pyc; and jobs' output folders.
  static IgnoreRules Defaults();
  // Adds the lines of a .musterignore.
  void Add(std::string_view text);
  // `path` is relative to the root, without a slash at its end.
  bool Ignores(std::string_view path, bool is_folder) const;

 private:
  struct Rule {
    std::string pattern;
    bool negated = false;
    bool folders_only = false;
    bool anchored = false;
  };
  std::vector<Rule> rules_;
};

}  // namespace muster::stage
