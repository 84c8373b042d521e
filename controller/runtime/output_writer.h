#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "controller/runtime/output_folder.h"

namespace muster::runtime {

// Writes into output folders on a thread of its own: these may lie on a slow or full file system,
// which must not hold up the engine. What can't be written is reported in the controller's log, and
// whole files are tried again until they can; the store has it all the same. Any thread.
class OutputWriter {
 public:
  OutputWriter();
  // Writes what is queued, then ends.
  ~OutputWriter();

  void Write(std::string path, std::string text, const Owner& owner);
  void Append(std::string path, std::string text, const Owner& owner);
  // Writes what `make` gives, which is called on the writer's thread: it may read files.
  void WriteMade(std::string path, std::function<std::string()> make, const Owner& owner);

 private:
  struct Job {
    std::string path;
    std::string text;
    std::function<std::string()> make;  // instead of text
    Owner owner;
    bool append = false;
    bool failed = false;
  };
  void Post(Job job);
  void Run();

  absl::Mutex mutex_;
  std::deque<Job> queue_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Job> unwritten_;  // the writer's thread: the newest of each whole file
  std::thread thread_;
};

}  // namespace muster::runtime
