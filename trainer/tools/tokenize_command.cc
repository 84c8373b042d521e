#include <fmt/format.h>

#include <charconv>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "trainer/data/data_error.h"
#include "trainer/tokenizer/utf8.h"
#include "trainer/tools/commands.h"
#include "trainer/tools/json_line.h"
#include "trainer/tools/tokenizer_flags.h"

namespace muster::tools {
namespace {

struct Arguments {
  tokenizer::TokenizerOptions tokenizer;
  bool no_special_tokens = false;
  bool append_eod = false;
  bool json_lines = false;
};

Flags MakeFlags(Arguments* args) {
  Flags flags;
  AddTokenizerFlags(flags, &args->tokenizer, &args->no_special_tokens);
  flags.Switch("--append-eod", &args->append_eod, "tokenize: end with the tokenizer's EOD");
  flags.Switch("--json-lines", &args->json_lines,
               "each line of text is a JSON string; without it all of stdin is one text");
  return flags;
}

std::unique_ptr<tokenizer::Tokenizer> Open(const std::vector<std::string>& words, Arguments* args) {
  MakeFlags(args).Parse(words);
  if (args->tokenizer.type.empty()) {
    throw UsageError("--tokenizer-type TYPE is missing; see --help");
  }
  args->tokenizer.hf_special_tokens = !args->no_special_tokens;
  return OpenTokenizer(args->tokenizer);
}

std::string ReadStdin() {
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

std::vector<int32_t> ParseIds(const std::string& text) {
  std::vector<int32_t> ids;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    int32_t id = 0;
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), id);
    if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size()) {
      throw data::DataError("stdin: '" + word + "' is not the number of a token");
    }
    ids.push_back(id);
  }
  return ids;
}

}  // namespace

int RunTokenize(const std::vector<std::string>& words) {
  Arguments args;
  const auto tokenizer = Open(words, &args);
  if (args.append_eod && !tokenizer->eod()) {
    throw tokenizer::TokenizerError("--append-eod: the tokenizer names no end-of-document token");
  }
  const auto encoder = tokenizer->NewEncoder();
  const auto print = [&](const std::string& text) {
    std::vector<int32_t> ids;
    encoder->Encode(text, ids);
    if (args.append_eod) ids.push_back(*tokenizer->eod());
    std::string line;
    for (const int32_t id : ids) {
      if (!line.empty()) line.push_back(' ');
      fmt::format_to(std::back_inserter(line), "{}", id);
    }
    line.push_back('\n');
    std::cout << line;
  };
  if (!args.json_lines) {
    const std::string text = ReadStdin();
    const size_t valid = tokenizer::ValidUtf8Prefix(text);
    if (valid < text.size()) {
      throw data::DataError(fmt::format("stdin, offset {}: not valid UTF-8", valid));
    }
    print(text);
    return 0;
  }
  int64_t number = 0;
  for (std::string line; std::getline(std::cin, line);) {
    ++number;
    try {
      print(ReadJsonString(line));
    } catch (const LineError& error) {
      throw data::DataError(fmt::format("stdin:{}:{}: {}", number, error.column, error.what()));
    }
  }
  return 0;
}

int RunDetokenize(const std::vector<std::string>& words) {
  Arguments args;
  const auto tokenizer = Open(words, &args);
  if (!args.json_lines) {
    std::cout << tokenizer->Decode(ParseIds(ReadStdin()));
    return 0;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const nlohmann::json text = tokenizer->Decode(ParseIds(line));
    std::cout << text.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  }
  return 0;
}

std::string TokenizeHelp() {
  Arguments args;
  return MakeFlags(&args).Help();
}

}  // namespace muster::tools
