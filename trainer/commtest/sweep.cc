#include "trainer/commtest/sweep.h"

#include <algorithm>
#include <chrono>

namespace muster::commtest {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

// The tensors of one size.
struct Buffers {
  at::Tensor given;
  at::Tensor got;  // the same tensor where the collective works in place
};

bool InPlace(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kBroadcast;
}

void Call(Group& group, Collective collective, Buffers& buffers, int64_t call) {
  parallel::Communicator& data = group.data();
  switch (collective) {
    case Collective::kAllReduce:
      data.AllReduce(buffers.got, parallel::ReduceOp::kSum);
      break;
    case Collective::kAllGather:
      data.AllGather(buffers.got, buffers.given);
      break;
    case Collective::kReduceScatter:
      data.ReduceScatter(buffers.got, buffers.given);
      break;
    case Collective::kBroadcast:
      data.Broadcast(buffers.got, RootOf(call, group.size()));
      break;
    case Collective::kSendReceive:
      data.SendReceive(buffers.given, (group.rank() + 1) % group.size(), buffers.got,
                       (group.rank() + group.size() - 1) % group.size());
      break;
  }
  data.Synchronize();
}

SweepRow Measure(Group& group, const Options& options, Collective collective, int64_t bytes) {
  const Shape shape = ShapeOf(collective, options.type, bytes, group.size());
  Buffers buffers;
  buffers.given = group.Allocate(shape.sent, options.type);
  buffers.got = InPlace(collective) ? buffers.given : group.Allocate(shape.received, options.type);
  std::vector<double> times;
  double wrong = 0;
  for (int64_t call = 0; call < options.warmup + options.iterations; ++call) {
    group.FillWith(buffers.given, Given(group.rank(), shape.sent, call));
    group.Barrier();
    const auto start = steady_clock::now();
    Call(group, collective, buffers, call);
    const double seconds = duration<double>(steady_clock::now() - start).count();
    wrong += static_cast<double>(
        group.WrongIn(buffers.got, Expected(collective, group.rank(), group.size(), shape, call)));
    if (call >= options.warmup) times.push_back(seconds);
  }
  group.Reduce(times, parallel::ReduceOp::kMax);
  // Sum of wrong elements; the maximum of size - rank tells the first rank that had some.
  std::vector<double> total = {wrong};
  group.Reduce(total, parallel::ReduceOp::kSum);
  std::vector<double> first = {wrong > 0 ? static_cast<double>(group.size() - group.rank()) : 0};
  group.Reduce(first, parallel::ReduceOp::kMax);
  SweepRow row{collective, shape.bytes, shape.count, Median(times), static_cast<int64_t>(total[0]),
               -1};
  if (first[0] > 0) row.wrong_rank = group.size() - static_cast<int64_t>(first[0]);
  return row;
}

}  // namespace

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<SweepRow> Sweep(Group& group, const Options& options,
                            const std::function<void(const SweepRow&)>& done) {
  std::vector<SweepRow> rows;
  for (const Collective collective : options.collectives) {
    for (const int64_t bytes : Sizes(options)) {
      rows.push_back(Measure(group, options, collective, bytes));
      done(rows.back());
    }
  }
  return rows;
}

}  // namespace muster::commtest
