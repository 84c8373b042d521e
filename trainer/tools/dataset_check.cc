#include "trainer/tools/dataset_check.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "trainer/data/data_error.h"
#include "trainer/data/indexed_dataset.h"
#include "trainer/data/mapped_file.h"
#include "trainer/tools/byte_source.h"

namespace muster::tools {
namespace {

using data::LoadUnaligned;

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

class Checker {
 public:
  Checker(const std::string& prefix, const CheckOptions& options)
      : prefix_(prefix), options_(options), dataset_(prefix), index_(prefix + ".idx") {
    report_.documents = dataset_.num_documents();
    report_.sequences = dataset_.lengths().size();
    starts_ = index_.data() + data::kIndexHeaderBytes + 4 * report_.sequences;
  }

  CheckReport Check() {
    CheckSequences();
    CheckDocuments();
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
      Sha256 sum;
      sum.Add(index_.data(), static_cast<size_t>(index_.size()));
      report_.idx_sha256 = sum.Hex();
    }
    return std::move(report_);
  }

 private:
  void Add(const std::string& problem) {
    ++report_.num_problems;
    if (report_.problems.size() < kMaxProblems) report_.problems.push_back(problem);
  }
  int64_t Start(int64_t i) const { return LoadUnaligned<int64_t>(starts_ + 8 * i); }

  void CheckSequences() {
    const int64_t width = data::TokenBytes(dataset_.token_type());
    int64_t expected = 0;
    for (int64_t i = 0; i < report_.sequences; ++i) {
      const int64_t length = dataset_.lengths()[i];
      if (length < 0) {
        Add(fmt::format("{}.idx, offset {}: sequence {} has {} tokens", prefix_,
                        data::kIndexHeaderBytes + 4 * i, i, length));
      }
      const int64_t start = Start(i);
      if (start != expected) {
        Add(
            fmt::format("{}.idx, offset {}: sequence {} starts at byte {} of .bin; the one before "
                        "it ends at {}",
                        prefix_, starts_ - index_.data() + 8 * i, i, start, expected));
      }
      // One wrong start is one problem.
      expected = start + std::max<int64_t>(length, 0) * width;
      report_.tokens += std::max<int64_t>(length, 0);
    }
    const int64_t size = FileSize(prefix_ + ".bin");
    if (size != expected) {
      Add(fmt::format("{}.bin has {} bytes; the last sequence ends at {}", prefix_, size,
                      expected));
    }
  }

  void CheckDocuments() {
    int64_t before = 0;
    for (int64_t d = 0; d <= report_.documents; ++d) {
      const int64_t begin = dataset_.document_begin(d);
      if (begin < before || begin > report_.sequences) {
        Add(fmt::format(
            "{}.idx, offset {}: document {} starts at sequence {}, the one before it at "
            "{}; there are {}",
            prefix_, data::kIndexHeaderBytes + 12 * report_.sequences + 8 * d, d, begin, before,
            report_.sequences));
      }
      before = begin;
    }
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
      const auto token = static_cast<int64_t>(tokens[i]);
      if (token >= 0 && (!options_.vocab_size || token < *options_.vocab_size)) continue;
      const auto at = offset + static_cast<int64_t>(i * sizeof(Token));
      Add(token < 0 ? fmt::format("{}.bin, offset {} ({}): token {} is negative", prefix_, at,
                                  Place(at), token)
                    : fmt::format("{}.bin, offset {} ({}): token {} is not below the vocabulary "
                                  "size {}",
                                  prefix_, at, Place(at), token, *options_.vocab_size));
    }
  }

  // The sequence that holds byte `at`, if the starts are in order.
  std::string Place(int64_t at) const {
    int64_t low = 0;
    int64_t high = report_.sequences;
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      (Start(middle) <= at ? low : high) = middle;
    }
    return fmt::format("sequence {}", low);
  }

  const std::string prefix_;
  const CheckOptions options_;
  const data::IndexedDataset dataset_;
  const data::MappedFile index_;
  const uint8_t* starts_ = nullptr;
  CheckReport report_;
};

}  // namespace

CheckReport CheckDataset(const std::string& prefix, const CheckOptions& options) {
  return Checker(prefix, options).Check();
}

}  // namespace muster::tools
