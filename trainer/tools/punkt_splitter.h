#pragma once

#include <string_view>
#include <vector>

#include "trainer/tools/punkt_model.h"
#include "trainer/tools/sentence_splitter.h"

namespace muster::tools {

// Sentences as Megatron's tools/preprocess_data.py --split-sentences cuts them with NLTK's Punkt:
// the same parts of the same text, for a model of the same data. Immutable: any thread.
class PunktSplitter : public SentenceSplitter {
 public:
  // `keep_newlines`: white space after a sentence stays with it (--keep-newlines).
  PunktSplitter(PunktModel model, bool keep_newlines);

  void Split(std::string_view text, std::vector<std::string_view>& sentences) const override;

 private:
  // A place where a sentence may end.
  struct Candidate {
    size_t begin;      // of the match: its end mark or, keeping newlines, the word before it
    size_t end;        // behind it
    size_t after_end;  // behind the token that follows
    size_t next;       // where the next sentence starts, if this one ends here
  };
  struct Span {
    size_t begin;
    size_t end;
  };

  void SplitPart(std::string_view text, std::vector<std::string_view>& sentences) const;
  std::vector<Candidate> Candidates(std::string_view text) const;
  std::vector<Span> Spans(std::string_view text) const;
  bool EndsSentence(std::string_view context) const;

  const PunktModel model_;
  const bool keep_newlines_;
};

}  // namespace muster::tools
