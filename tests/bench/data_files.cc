#include "tests/bench/data_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>
#include <vector>

#include "trainer/data/indexed_format.h"
#include "trainer/data/indexed_writer.h"

namespace muster::bench {
namespace {

template <typename T>
void Put(std::ofstream& out, T value) {
  out.write(reinterpret_cast<const char*>(&value), sizeof(value));
}

// value(0), value(1) .. value(count - 1).
template <typename T, typename Value>
void PutMany(std::ofstream& out, int64_t count, Value value) {
  std::vector<T> block(1 << 20);
  for (int64_t done = 0; done < count;) {
    const int64_t n = std::min<int64_t>(count - done, static_cast<int64_t>(block.size()));
    for (int64_t i = 0; i < n; ++i) block[static_cast<size_t>(i)] = value(done + i);
    out.write(reinterpret_cast<const char*>(block.data()), n * static_cast<int64_t>(sizeof(T)));
    done += n;
  }
}

}  // namespace

WorkFolder::WorkFolder(const std::string& parent) : path_(parent + "/muster_bench_XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no folder in " + parent);
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void MakeTextDataset(const std::string& prefix, int64_t megabytes) {
  std::mt19937 random(1);
  data::IndexedWriter writer(prefix, data::TokenType::kInt32);
  std::vector<int32_t> tokens;
  for (int64_t left = megabytes * 1'000'000 / 4; left > 0;) {
    const auto length = static_cast<int32_t>(std::min<int64_t>(left, 100 + random() % 2901));
    tokens.resize(static_cast<size_t>(length));
    for (int32_t& token : tokens) token = static_cast<int32_t>(random() % (kVocabulary - 1));
    tokens.back() = kVocabulary - 1;
    const int32_t one = 1;
    writer.Append({reinterpret_cast<const uint8_t*>(tokens.data()), tokens.size() * 4},
                  {&length, 1}, {&one, 1});
    left -= length;
  }
  writer.Finish();
}

void MakeUniformDataset(const std::string& prefix, int64_t documents) {
  std::ofstream bin(prefix + ".bin", std::ios::binary);
  bin.close();
  std::filesystem::resize_file(prefix + ".bin", static_cast<uintmax_t>(documents) * 4);
  std::ofstream out(prefix + ".idx", std::ios::binary);
  out.write(data::kIndexMagic, sizeof(data::kIndexMagic));
  Put(out, data::kIndexVersion);
  Put(out, data::TokenType::kInt32);
  Put(out, static_cast<uint64_t>(documents));
  Put(out, static_cast<uint64_t>(documents + 1));
  PutMany<int32_t>(out, documents, [](int64_t) { return 1; });
  PutMany<int64_t>(out, documents, [](int64_t i) { return i * 4; });
  PutMany<int64_t>(out, documents + 1, [](int64_t i) { return i; });
  out.close();
  if (!out) throw std::runtime_error("write " + prefix + ".idx: no space?");
}

void DropFromPageCache(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ::fdatasync(fd);  // dirty pages would stay
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

}  // namespace muster::bench
