#include "trainer/commtest/pattern.h"

#include <stdexcept>

namespace muster::commtest {
namespace {

// Neither has a factor in common with kPeriod, so neighbours in rank and in time differ.
constexpr int64_t kRankStep = 5;
constexpr int64_t kCallStep = 3;

template <class Visit>
auto WithData(const at::Tensor& tensor, Visit visit) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return visit(tensor.data_ptr<float>());
    case at::kDouble:
      return visit(tensor.data_ptr<double>());
    case at::kInt:
      return visit(tensor.data_ptr<int32_t>());
    case at::kLong:
      return visit(tensor.data_ptr<int64_t>());
    default:
      throw std::invalid_argument("no such type in muster-commtest");
  }
}

// visit(i, value) for every element.
template <class Visit>
void ForEach(const Content& content, Visit visit) {
  int64_t i = 0;
  for (const Piece& piece : content) {
    size_t k = static_cast<size_t>(piece.offset % kPeriod);
    for (const int64_t end = i + piece.count; i < end; ++i) {
      visit(i, piece.values[k]);
      if (++k == piece.values.size()) k = 0;
    }
  }
}

Piece OfRank(int64_t rank, int64_t count, int64_t call) {
  Piece piece{count, kRankStep * rank + kCallStep * call, {}};
  for (size_t k = 0; k < piece.values.size(); ++k) piece.values[k] = static_cast<int64_t>(k);
  return piece;
}

// The sum over all ranks; `first`: index of its first element in what they gave.
Piece SumOfRanks(int64_t ranks, int64_t first, int64_t count, int64_t call) {
  Piece piece{count, first + kCallStep * call, {}};
  for (int64_t k = 0; k < kPeriod; ++k) {
    int64_t& sum = piece.values[static_cast<size_t>(k)];
    for (int64_t rank = 0; rank < ranks; ++rank) sum += (k + kRankStep * rank) % kPeriod;
  }
  return piece;
}

}  // namespace

Content Given(int64_t rank, int64_t count, int64_t call) {
  return {OfRank(rank, count, call)};
}

Content Expected(Collective collective, int64_t rank, int64_t ranks, const Shape& shape,
                 int64_t call) {
  switch (collective) {
    case Collective::kAllReduce:
      return {SumOfRanks(ranks, 0, shape.received, call)};
    case Collective::kReduceScatter:
      return {SumOfRanks(ranks, rank * shape.received, shape.received, call)};
    case Collective::kBroadcast:
      return {OfRank(RootOf(call, ranks), shape.received, call)};
    case Collective::kSendReceive:
      return {OfRank((rank + ranks - 1) % ranks, shape.received, call)};
    case Collective::kAllGather:
      break;
  }
  Content parts;
  for (int64_t r = 0; r < ranks; ++r) parts.push_back(OfRank(r, shape.sent, call));
  return parts;
}

int64_t RootOf(int64_t call, int64_t ranks) {
  return call % ranks;
}

at::ScalarType ToTorch(Type type) {
  switch (type) {
    case Type::kFloat:
      return at::kFloat;
    case Type::kDouble:
      return at::kDouble;
    case Type::kInt32:
      return at::kInt;
    case Type::kInt64:
      return at::kLong;
  }
  throw std::invalid_argument("no such type");
}

void Fill(at::Tensor& tensor, const Content& content) {
  WithData(tensor, [&]<class T>(T* data) {
    ForEach(content, [data](int64_t i, int64_t value) { data[i] = static_cast<T>(value); });
  });
}

int64_t CountWrong(const at::Tensor& tensor, const Content& content) {
  return WithData(tensor, [&]<class T>(const T* data) {
    int64_t wrong = 0;
    ForEach(content, [&wrong, data](int64_t i, int64_t value) {
      wrong += data[i] == static_cast<T>(value) ? 0 : 1;
    });
    return wrong;
  });
}

}  // namespace muster::commtest
