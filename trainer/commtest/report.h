#pragma once

#include <string>
#include <vector>

#include "trainer/commtest/options.h"
#include "trainer/commtest/outliers.h"
#include "trainer/commtest/pairs.h"
#include "trainer/commtest/sweep.h"

// What rank 0 prints. Pure; lines end with a newline.

namespace muster::commtest {

struct Report {
  std::string backend;
  Type type = Type::kFloat;
  std::vector<std::string> host_of_rank;
  std::vector<Place> places;
  std::vector<SweepRow> sweep;
  std::vector<PairRow> pairs;
  Oddities oddities;
};

// nccl-tests' columns.
std::string HeaderText(const Report& report);
std::string CollectiveHeader(Collective collective);
std::string RowText(const SweepRow& row, Type type, int64_t ranks);
std::string SweepEnd(const Report& report);

// A line a pair, the odd ones marked; of a large table only the odd ones and the extremes.
std::string PairsText(const Report& report);
// A line for each odd host, for each odd pair that no odd host explains, and for wrong data.
std::string VerdictText(const Report& report);

// One line; docs/commtest.md lists the keys.
std::string JsonText(const Report& report);

// "12 wrong elements from node1 to node2": each place where data was wrong; empty: none.
std::vector<std::string> WrongData(const Report& report);

}  // namespace muster::commtest
