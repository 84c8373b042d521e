#include "trainer/commtest/collective.h"

#include <algorithm>

namespace muster::commtest {

const std::vector<Collective>& AllCollectives() {
  static const auto& all = *new std::vector<Collective>{
      Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter,
      Collective::kBroadcast, Collective::kSendReceive};
  return all;
}

std::string Name(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
      return "all_reduce";
    case Collective::kAllGather:
      return "all_gather";
    case Collective::kReduceScatter:
      return "reduce_scatter";
    case Collective::kBroadcast:
      return "broadcast";
    case Collective::kSendReceive:
      return "sendrecv";
  }
  return "";
}

const std::vector<Type>& AllTypes() {
  static const auto& all =
      *new std::vector<Type>{Type::kFloat, Type::kDouble, Type::kInt32, Type::kInt64};
  return all;
}

std::string Name(Type type) {
  switch (type) {
    case Type::kFloat:
      return "float";
    case Type::kDouble:
      return "double";
    case Type::kInt32:
      return "int32";
    case Type::kInt64:
      return "int64";
  }
  return "";
}

int64_t SizeOf(Type type) {
  return type == Type::kFloat || type == Type::kInt32 ? 4 : 8;
}

Shape ShapeOf(Collective collective, Type type, int64_t bytes, int64_t ranks) {
  const int64_t elements = std::max<int64_t>(bytes / SizeOf(type), 1);
  const int64_t part = std::max<int64_t>(elements / ranks, 1);
  Shape shape{elements, elements, elements, 0};
  if (collective == Collective::kAllGather) shape = {part, part, part * ranks, 0};
  if (collective == Collective::kReduceScatter) shape = {part, part * ranks, part, 0};
  shape.bytes = std::max(shape.sent, shape.received) * SizeOf(type);
  return shape;
}

std::string ReduceName(Collective collective) {
  const bool adds =
      collective == Collective::kAllReduce || collective == Collective::kReduceScatter;
  return adds ? "sum" : "none";
}

double AlgorithmBandwidth(int64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / seconds : 0;
}

double BusBandwidth(Collective collective, int64_t bytes, double seconds, int64_t ranks) {
  const double n = static_cast<double>(ranks);
  double factor = 1;
  if (collective == Collective::kAllReduce) factor = 2 * (n - 1) / n;
  if (collective == Collective::kAllGather || collective == Collective::kReduceScatter) {
    factor = (n - 1) / n;
  }
  return AlgorithmBandwidth(bytes, seconds) * factor;
}

}  // namespace muster::commtest
