#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

// Stands in for libFuzzer in an ordinary build: gives a target the files of its corpus and ROUNDS
// changed copies of each, the same ones on every machine. What breaks the target names the file
// and the round on stderr.
//   muster_hostfile_fuzz ROUNDS FOLDER...

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;

struct Input {
  std::string path;
  std::string bytes;
};

// What the target is given right now.
char g_current[4096];

void SayCurrent(int signal) {
  // Only what a signal handler may call; nothing can be done about a failed write.
  if (::write(STDERR_FILENO, g_current, std::strlen(g_current)) < 0) ::_exit(1);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

std::vector<Input> ReadCorpus(const std::vector<std::string>& folders) {
  std::vector<Input> corpus;
  for (const std::string& folder : folders) {
    for (const auto& file : fs::recursive_directory_iterator(folder)) {
      if (!file.is_regular_file()) continue;
      std::ifstream in(file.path(), std::ios::binary);
      corpus.push_back({file.path(), std::string(std::istreambuf_iterator<char>(in), {})});
    }
  }
  std::sort(corpus.begin(), corpus.end(),
            [](const Input& a, const Input& b) { return a.path < b.path; });
  return corpus;
}

// One small change: a bit, a byte that often matters, a part cut out, doubled, or taken from
// another file.
void Change(std::string& bytes, const std::vector<Input>& corpus, std::mt19937& random) {
  const size_t at = random() % (bytes.size() + 1);
  const size_t part = std::min<size_t>(1 + random() % 16, bytes.size() - at);
  switch (random() % 6) {
    case 0:
      if (part > 0) bytes[at] = static_cast<char>(bytes[at] ^ static_cast<char>(1 << random() % 8));
      break;
    case 1: {
      constexpr char kTelling[] = {'\0', '\xff', '\x7f', '\x80', '\n', '"', '\\', '-', '9', ' '};
      bytes.insert(at, 1 + random() % 3, kTelling[random() % std::size(kTelling)]);
      break;
    }
    case 2:
      bytes.erase(at, part);
      break;
    case 3:
      bytes.insert(at, std::string(bytes, at, part));
      break;
    case 4: {
      const std::string& other = corpus[random() % corpus.size()].bytes;
      bytes.replace(at, part, other, random() % (other.size() + 1), 1 + random() % 16);
      break;
    }
    default:
      if (random() % 4 == 0) bytes.resize(at);
      break;
  }
}

void Give(const Input& input, int round, const std::string& bytes) {
  std::snprintf(g_current, sizeof(g_current), "%s: broke the target in round %d\n",
                input.path.c_str(), round);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s ROUNDS FOLDER...\n", argv[0]);
    return 2;
  }
  const int rounds = std::atoi(argv[1]);
  const std::vector<Input> corpus = ReadCorpus({argv + 2, argv + argc});
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: no file in the folders\n", argv[0]);
    return 2;
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    std::signal(signal, SayCurrent);
  }
  for (const Input& input : corpus) {
    Give(input, 0, input.bytes);
    std::mt19937 random(static_cast<uint32_t>(input.bytes.size()));
    for (int round = 1; round <= rounds; ++round) {
      std::string bytes = input.bytes;
      for (uint32_t changes = 1 + random() % 4; changes > 0; --changes) {
        Change(bytes, corpus, random);
      }
      Give(input, round, bytes);
    }
  }
  std::printf("%zu files, %d changed copies of each\n", corpus.size(), rounds);
  return 0;
}
