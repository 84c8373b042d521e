// A rank for `muster_logs_bench`: it writes as cheaply as can be, so that what is measured is what
// carries the bytes.
//
//   muster_logs_writer flood MIB FILE   lines of 100 bytes as fast as they are taken; FILE.<rank>
//   gets the
//                                       time before the first write
//   muster_logs_writer steady SECONDS   one line a second
//   muster_logs_writer stamp COUNT      a line with the time (ns since 1970) every 50 to 150 ms
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

namespace {

constexpr size_t kLine = 100;
constexpr size_t kBlock = 64 << 10;

long long NowNs() {
  return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

bool Put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(STDOUT_FILENO, text.data(), text.size());
    if (n <= 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

std::string Rank() {
  const char* const rank = std::getenv("RANK");
  return rank == nullptr ? "0" : rank;
}

int Flood(size_t mib, const std::string& path) {
  std::string block;
  while (block.size() < kBlock) {
    std::string line = "rank " + Rank() + " | iteration | loss 9.1 | grad norm 1.0 | ";
    line.resize(kLine - 1, '.');
    block += line + "\n";
  }
  std::FILE* const file = std::fopen((path + "." + Rank()).c_str(), "w");
  if (file == nullptr) return 1;
  std::fprintf(file, "%lld\n", NowNs());
  std::fclose(file);
  for (size_t left = mib << 20; left > 0;) {
    const size_t size = left < block.size() ? left : block.size();
    if (!Put(std::string_view(block).substr(0, size))) return 1;
    left -= size;
  }
  return 0;
}

int Steady(int seconds) {
  for (int i = 0; i < seconds; ++i) {
    const std::string line = "iteration " + std::to_string(i) + " | loss 9.13E+00 | rank " + Rank();
    if (!Put(line + "\n")) return 1;
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  return 0;
}

int Stamp(int count) {
  for (int i = 0; i < count; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50 + (i * 37) % 101));
    if (!Put("stamp " + std::to_string(NowNs()) + "\n")) return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 2 ? argv[1] : "";
  if (mode == "flood" && argc > 3) return Flood(std::strtoul(argv[2], nullptr, 10), argv[3]);
  if (mode == "steady") return Steady(std::atoi(argv[2]));
  if (mode == "stamp") return Stamp(std::atoi(argv[2]));
  std::fputs("usage: muster_logs_writer flood MIB FILE | steady SECONDS | stamp COUNT\n", stderr);
  return 2;
}
