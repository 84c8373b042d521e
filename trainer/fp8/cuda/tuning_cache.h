#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace muster::fp8::cuda {

// A cuBLASLt algorithm with its configuration: opaque, and meaningful to the same version of the
// library on the same kind of GPU only.
struct GemmAlgorithm {
  std::array<uint64_t, 8> words{};
  bool operator==(const GemmAlgorithm&) const = default;
};

// Algorithms that were found fastest, kept in a file so that only the first run of a shape times
// them. A cache: no file, or one that is damaged or can't be written, costs time and is noted,
// never an error. One text file serves several GPU kinds, library versions and processes: Save adds
// to what the file has by then and replaces it atomically. One thread.
class TuningCache {
 public:
  using Note = std::function<void(const std::string&)>;

  // `file` empty: memory only. `device` and `library`: what entries are valid for, such as
  // "NVIDIA H200" and "cublasLt 130100"; without tabs or newlines.
  TuningCache(std::string file, std::string device, std::string library, Note note);

  std::optional<GemmAlgorithm> Find(const std::string& key) const;
  // Of a new or replaced entry; `microseconds` is for people who read the file.
  void Add(const std::string& key, const GemmAlgorithm& algorithm, double microseconds);
  // Writes what was added since the last Save, if anything.
  void Save();

 private:
  struct Entry {
    GemmAlgorithm algorithm;
    double microseconds = 0;
  };
  using Entries = std::map<std::string, Entry>;  // by device, library and key, tabs between

  std::string FullKey(const std::string& key) const;
  Entries Read() const;

  std::string file_, device_, library_;
  Note note_;
  Entries entries_;
  Entries added_;
};

}  // namespace muster::fp8::cuda
