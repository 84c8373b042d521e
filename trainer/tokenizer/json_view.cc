#include "trainer/tokenizer/json_view.h"

#include <fmt/format.h>

#include "trainer/tokenizer/tokenizer.h"

namespace muster::tokenizer {
namespace {

constexpr int kMaxDepth = 64;

}  // namespace

void JsonView::Fail(const std::string& reason) const {
  throw TokenizerError((place_.empty() ? "the file" : place_) + ": " + reason);
}

JsonView JsonView::Inner(const nlohmann::json& value, const std::string& step) const {
  if (depth_ >= kMaxDepth) Fail(fmt::format("nested more than {} deep", kMaxDepth));
  return {value, place_ + step, depth_ + 1};
}

std::optional<JsonView> JsonView::Find(const std::string& key) const {
  if (!value_->is_object()) Fail("is not an object");
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return Inner(*found, (place_.empty() ? "" : ".") + key);
}

JsonView JsonView::At(const std::string& key) const {
  auto found = Find(key);
  if (!found) Fail("'" + key + "' is missing");
  return *std::move(found);
}

std::vector<JsonView> JsonView::Items() const {
  if (!value_->is_array()) Fail("is not a list");
  std::vector<JsonView> items;
  for (const auto& item : *value_) items.push_back(Inner(item, fmt::format("[{}]", items.size())));
  return items;
}

std::vector<std::pair<std::string, JsonView>> JsonView::Members() const {
  if (!value_->is_object()) Fail("is not an object");
  std::vector<std::pair<std::string, JsonView>> members;
  for (const auto& [key, value] : value_->items()) {
    members.emplace_back(key, Inner(value, (place_.empty() ? "" : ".") + key));
  }
  return members;
}

std::string JsonView::Text() const {
  if (!value_->is_string()) Fail("is not a text");
  return value_->get<std::string>();
}

bool JsonView::Bool() const {
  if (!value_->is_boolean()) Fail("is neither true nor false");
  return value_->get<bool>();
}

int64_t JsonView::Integer() const {
  // Above 2^63 the parser makes an unsigned number.
  const bool fits = value_->is_number_integer() &&
                    !(value_->is_number_unsigned() && value_->get<uint64_t>() > INT64_MAX);
  if (!fits) Fail("is not a whole number");
  return value_->get<int64_t>();
}

double JsonView::Number() const {
  if (!value_->is_number()) Fail("is not a number");
  return value_->get<double>();
}

bool JsonView::BoolOr(const std::string& key, bool otherwise) const {
  const auto found = Find(key);
  return found ? found->Bool() : otherwise;
}

}  // namespace muster::tokenizer
