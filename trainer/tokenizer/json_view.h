#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace muster::tokenizer {

// A value of a JSON file that knows its place in it, so that every mistake is reported by place:
// "pre_tokenizer.pretokenizers[0].behavior: ...". All errors are TokenizerErrors. Cheap to copy;
// the JSON must outlive it.
class JsonView {
 public:
  JsonView(const nlohmann::json& value, std::string place, int depth = 0)
      : value_(&value), place_(std::move(place)), depth_(depth) {}

  // A member of an object: required, or nothing where it is missing or null.
  JsonView At(const std::string& key) const;
  std::optional<JsonView> Find(const std::string& key) const;

  // Members of an array.
  std::vector<JsonView> Items() const;
  // Members of an object, in the order of the file's keys as nlohmann keeps them (sorted).
  std::vector<std::pair<std::string, JsonView>> Members() const;

  std::string Text() const;
  bool Bool() const;
  int64_t Integer() const;
  double Number() const;
  bool is_text() const { return value_->is_string(); }
  bool is_object() const { return value_->is_object(); }

  bool BoolOr(const std::string& key, bool otherwise) const;
  // The text under "type".
  std::string Type() const { return At("type").Text(); }

  // Throws: the place, then `reason`.
  [[noreturn]] void Fail(const std::string& reason) const;
  const std::string& place() const { return place_; }

 private:
  JsonView Inner(const nlohmann::json& value, const std::string& step) const;

  const nlohmann::json* value_;
  std::string place_;
  int depth_;  // hostile files nest without end, readers recurse
};

}  // namespace muster::tokenizer
