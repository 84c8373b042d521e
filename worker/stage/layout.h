#pragma once

#include <string>
#include <string_view>

#include "common/tree.h"

namespace muster::stage {

// Names below a node's state folder (docs/staging.md). A version is there exactly when its folder
// and its manifest are.
struct Layout {
  std::string root;     // <state folder>/stage
  std::string version;  // the tree itself
  std::string manifest;
  std::string links;    // one path a line: links outside that lead to the version
  std::string partial;  // what is being made
  std::string lock;     // held while it is being made, repaired or removed
  std::string use;      // shared by those who use the version; held alone while it is removed

  Layout(const std::string& state_dir, std::string_view content_id)
      : root(state_dir + "/stage"),
        version(state_dir + "/" + StageFolder(content_id)),
        manifest(version + ".manifest"),
        links(version + ".links"),
        partial(version + ".partial"),
        lock(version + ".lock"),
        use(version + ".use") {}
};

}  // namespace muster::stage
