#include "trainer/tools/dataset_check.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/data/data_error.h"
#include "trainer/data/indexed_dataset.h"
#include "trainer/data/mapped_file.h"
#include "trainer/tools/byte_source.h"

namespace muster::tools {
namespace {

constexpr size_t kMaxProblems = 20;
constexpr size_t kBlockBytes = 1 << 20;

class Sha256 {
 public:
  Sha256() : context_(::EVP_MD_CTX_new(), &::EVP_MD_CTX_free) {
    ::EVP_DigestInit_ex(context_.get(), ::EVP_sha256(), nullptr);
  }
  void Add(const void* data, size_t size) { ::EVP_DigestUpdate(context_.get(), data, size); }
  std::string Hex() {
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    ::EVP_DigestFinal_ex(context_.get(), digest, &size);
    return fmt::format("{:02x}", fmt::join(digest, digest + size, ""));
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&::EVP_MD_CTX_free)> context_;
};

int Threads() {
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

class Checker {
 public:
  Checker(const std::string& prefix, const CheckOptions& options)
      : prefix_(prefix), options_(options), dataset_(prefix) {
    report_.documents = dataset_.num_documents();
    report_.sequences = dataset_.lengths().size();
  }

  CheckReport Check() {
    try {
      dataset_.CheckAll(Threads());
    } catch (const data::DataError& error) {
      Add(error.what());
      return std::move(report_);  // the places of tokens mean nothing
    }
    report_.tokens = dataset_.TokensBefore(report_.sequences);
    switch (dataset_.token_type()) {
      case data::TokenType::kUint8:
        CheckTokens<uint8_t>();
        break;
      case data::TokenType::kInt8:
        CheckTokens<int8_t>();
        break;
      case data::TokenType::kInt16:
        CheckTokens<int16_t>();
        break;
      case data::TokenType::kUint16:
        CheckTokens<uint16_t>();
        break;
      case data::TokenType::kInt32:
        CheckTokens<int32_t>();
        break;
      case data::TokenType::kInt64:
        CheckTokens<int64_t>();
        break;
    }
    if (options_.sums) {
      const data::MappedFile index(prefix_ + ".idx");
      Sha256 sum;
      sum.Add(index.data(), static_cast<size_t>(index.size()));
      report_.idx_sha256 = sum.Hex();
    }
    return std::move(report_);
  }

 private:
  void Add(const std::string& problem) {
    ++report_.num_problems;
    if (report_.problems.size() < kMaxProblems) report_.problems.push_back(problem);
  }

  template <typename Token>
  void CheckTokens() {
    FileSource file(prefix_ + ".bin");
    std::vector<Token> block(kBlockBytes / sizeof(Token));
    Sha256 sum;
    auto lowest = std::numeric_limits<int64_t>::max();
    auto highest = std::numeric_limits<int64_t>::min();
    for (int64_t offset = 0;;) {
      const size_t bytes = ReadBlock(file, reinterpret_cast<char*>(block.data()), kBlockBytes);
      const std::span<const Token> tokens(block.data(), bytes / sizeof(Token));
      if (options_.sums) sum.Add(block.data(), bytes);
      if (!tokens.empty()) {
        const auto [low, high] = std::minmax_element(tokens.begin(), tokens.end());
        lowest = std::min(lowest, static_cast<int64_t>(*low));
        highest = std::max(highest, static_cast<int64_t>(*high));
        if (*low < 0 || (options_.vocab_size && *high >= *options_.vocab_size)) {
          NameTokens(tokens, offset);
        }
      }
      offset += static_cast<int64_t>(bytes);
      if (bytes < kBlockBytes) break;
    }
    if (highest >= lowest) {
      report_.lowest_token = lowest;
      report_.highest_token = highest;
    }
    if (options_.sums) report_.bin_sha256 = sum.Hex();
  }

  static size_t ReadBlock(FileSource& file, char* out, size_t size) {
    size_t done = 0;
    while (done < size) {
      const size_t n = file.Read(out + done, size - done);
      if (n == 0) break;
      done += n;
    }
    return done;
  }

  template <typename Token>
  void NameTokens(std::span<const Token> tokens, int64_t offset) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      const int64_t token{tokens[i]};
      if (token >= 0 && (!options_.vocab_size || token < *options_.vocab_size)) continue;
      const int64_t number = offset / static_cast<int64_t>(sizeof(Token)) + static_cast<int64_t>(i);
      const std::string reason =
          token < 0 ? "is negative"
                    : fmt::format("is not below the vocabulary size {}", *options_.vocab_size);
      Add(fmt::format("{}: token {} {}", Place(number), token, reason));
    }
  }

  // Where the token of this number is: in the last sequence that starts at or before it.
  std::string Place(int64_t number) const {
    int64_t low = 0;
    int64_t high = report_.sequences;
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      (dataset_.TokensBefore(middle) <= number ? low : high) = middle;
    }
    return dataset_.Where(low, number - dataset_.TokensBefore(low));
  }

  const std::string prefix_;
  const CheckOptions options_;
  const data::IndexedDataset dataset_;
  CheckReport report_;
};

}  // namespace

CheckReport CheckDataset(const std::string& prefix, const CheckOptions& options) {
  return Checker(prefix, options).Check();
}

}  // namespace muster::tools
