#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::tokenizer {

// A token that is looked for in the text itself, before anything splits it.
struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false;
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // and after it
  bool normalized = false;   // looked for after the others
  bool as_text = false;      // hides shorter tokens in it, but stays plain text
};

// A stretch of text: an added token, or (id -1) plain text.
struct Stretch {
  std::string_view text;
  int32_t id = -1;
};

// Finds added tokens: of those that match, the leftmost, then the longest. Immutable: any thread.
class AddedTokenFinder {
 public:
  explicit AddedTokenFinder(std::vector<AddedToken> tokens);

  // Gives `use` the stretches of `text`, in order; none is empty.
  void Split(std::string_view text, const std::function<void(const Stretch&)>& use) const;

  bool empty() const { return tokens_.empty(); }

 private:
  struct Edge {
    uint8_t byte;
    int32_t node;
  };
  struct Node {
    std::vector<Edge> edges;
    int32_t token = -1;  // index in tokens_
  };
  struct Match {
    size_t begin;
    size_t end;
    int32_t token;  // -1: none
  };

  int32_t Child(int32_t node, uint8_t byte) const;
  void Insert(std::string_view content, int32_t token);
  Match FindFrom(std::string_view text, size_t at) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::array<int32_t, 256> first_{};  // node after the first byte; 0: none
  int only_first_byte_ = -1;          // when all tokens share it
};

}  // namespace muster::tokenizer
