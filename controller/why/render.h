#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/why/why.h"

// A Why as text. Pure.

namespace muster::why {

// A line of the screen: `label` stands before the first line of a section, "" before the others.
struct TextLine {
  enum class Tone { kPlain, kBad, kGood, kQuiet };
  std::string_view label;
  std::string text;
  Tone tone = Tone::kPlain;
};

// "job 3 (tiny) failed after 12 s, exit code 137".
std::string Headline(const Why& why);

// That logs of these ranks (Why::unfinished) are not whole.
std::string UnfinishedText(const std::vector<uint32_t>& ranks);

// Everything below the headline.
std::vector<TextLine> Lines(const Why& why);

// Label and text as columns.
std::string Format(const TextLine& line);

// The whole screen, as why.txt has it.
std::string Text(const Why& why);

// One JSON object (docs/why.md).
std::string Json(const Why& why);

}  // namespace muster::why
