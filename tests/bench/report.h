#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::bench {

// One figure of a benchmark, with its ratio to a named peer or limit where one was measured.
struct Row {
  std::string name;  // words with dots: "gemm.qkv.forward.fast"
  double value;
  std::string unit;
  bool higher_is_better;
  std::string remark;  // clocks and the like; for people
};

// Rows as they are measured: each is printed at once, as a table row or (json) kept for Finish.
class Report {
 public:
  // `references`: by row name, what that row is compared with and how that is called.
  struct Reference {
    double value;
    std::string of;
  };
  Report(bool json, std::map<std::string, Reference> references)
      : json_(json), references_(std::move(references)) {}

  void Add(const Row& row);
  // Prints the JSON list.
  void Finish() const;

 private:
  std::optional<Reference> ReferenceOf(const Row& row) const;

  bool json_;
  std::map<std::string, Reference> references_;
  std::vector<Row> rows_;
};

// "name=value=label", as given on a command line. Throws std::invalid_argument.
std::pair<std::string, Report::Reference> ParseReference(const std::string& text);

}  // namespace muster::bench
