#include "trainer/commtest/run.h"

#include <optional>

namespace muster::commtest {

Report RunTest(Group& group, const Options& options, const std::string& host,
               const std::function<void(const std::string&)>& print) {
  Report report;
  report.backend = BackendName(options);
  report.type = options.type;
  report.host_of_rank = group.Gather(host);
  print(HeaderText(report));
  std::optional<Collective> last;
  report.sweep = Sweep(group, options, [&](const SweepRow& row) {
    if (last != row.collective) print(CollectiveHeader(row.collective));
    last = row.collective;
    print(RowText(row, options.type, group.size()));
  });
  print(SweepEnd(report));
  if (!options.pairs) return report;
  report.places = PlacesOf(report.host_of_rank);
  report.pairs = MeasurePairs(group, report.places, options);
  report.oddities = FindOddities(report.pairs, static_cast<int64_t>(report.places.size()));
  print(PairsText(report));
  return report;
}

}  // namespace muster::commtest
