#include "trainer/tokenizer/hf_post_processor.h"

#include <limits>
#include <string>

namespace muster::tokenizer {
namespace {

int32_t ReadId(const JsonView& value) {
  const int64_t id = value.Integer();
  if (id < 0 || id > std::numeric_limits<int32_t>::max()) value.Fail("is not the id of a token");
  return static_cast<int32_t>(id);
}

// ["token", id]
int32_t ReadPair(const JsonView& pair) {
  const auto items = pair.Items();
  if (items.size() != 2) pair.Fail("is not a pair of token and id");
  return ReadId(items[1]);
}

// The tokens of `inner` go around what is there already.
void Enclose(const Surround& inner, Surround& out) {
  out.prefix.insert(out.prefix.begin(), inner.prefix.begin(), inner.prefix.end());
  out.suffix.insert(out.suffix.end(), inner.suffix.begin(), inner.suffix.end());
}

Surround LoadTemplate(const JsonView& processor) {
  Surround loaded;
  bool after_text = false;
  const JsonView single = processor.At("single");
  for (const JsonView& piece : single.Items()) {
    if (piece.Find("Sequence")) {
      if (after_text) single.Fail("the text stands twice in it");
      after_text = true;
      continue;
    }
    const std::string name = piece.At("SpecialToken").At("id").Text();
    for (const JsonView& id : processor.At("special_tokens").At(name).At("ids").Items()) {
      (after_text ? loaded.suffix : loaded.prefix).push_back(ReadId(id));
    }
  }
  if (!after_text) single.Fail("has no place for the text");
  return loaded;
}

}  // namespace

Surround LoadPostProcessor(const JsonView& processor) {
  const std::string type = processor.Type();
  if (type == "Sequence") {
    Surround loaded;
    for (const JsonView& inner : processor.At("processors").Items()) {
      Enclose(LoadPostProcessor(inner), loaded);
    }
    return loaded;
  }
  if (type == "TemplateProcessing") return LoadTemplate(processor);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    return {{ReadPair(processor.At("cls"))}, {ReadPair(processor.At("sep"))}};
  }
  if (type == "ByteLevel") return {};  // only moves offsets
  processor.At("type").Fail("'" + type +
                            "' is not supported (TemplateProcessing, ByteLevel, "
                            "BertProcessing, RobertaProcessing, Sequence are)");
}

}  // namespace muster::tokenizer
