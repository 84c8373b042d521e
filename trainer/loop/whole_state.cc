#include "trainer/loop/whole_state.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "trainer/model/shard.h"

namespace muster::loop {
namespace {

using nlohmann::json;

// One tensor of the state as ranks send it: the parts of the tensor-parallel ranks make up the
// whole.
struct Piece {
  std::string name;  // model.<parameter>, optimizer.<parameter>.<moment>, fp8.<linear>...
  at::Tensor tensor;
  model::Split split = {};
};

std::string ParameterOf(const std::string& moment) {
  return moment.substr(0, moment.rfind('.'));
}

// Without what another rank of the model counts.
std::vector<Piece> PiecesOf(const engine::State& state, bool with_duplicates) {
  std::vector<Piece> pieces;
  std::map<std::string, const model::Parameter*> parameters;
  const auto wanted = [&](const model::Parameter& parameter) {
    return with_duplicates || !parameter.duplicate;
  };
  for (const model::Parameter& parameter : state.parameters) {
    parameters[parameter.name] = &parameter;
    if (wanted(parameter)) {
      pieces.push_back({"model." + parameter.name, parameter.value, parameter.split});
    }
  }
  for (const auto& [name, tensor] : state.optimizer) {
    const model::Parameter& parameter = *parameters.at(ParameterOf(name));
    if (wanted(parameter)) pieces.push_back({"optimizer." + name, tensor, parameter.split});
  }
  for (const auto& [name, tensor] : state.fp8) pieces.push_back({"fp8." + name, tensor});
  return pieces;
}

// A text that another rank does not know the length of.
void SendText(parallel::Communicator& group, const std::string& text, int64_t to) {
  const at::Tensor bytes = at::empty({static_cast<int64_t>(text.size())}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  group.Send(at::scalar_tensor(bytes.numel(), at::kLong).view({1}), to);
  group.Send(bytes, to);
}

std::string ReceiveText(parallel::Communicator& group, int64_t from) {
  at::Tensor size = at::empty({1}, at::kLong);
  group.Receive(size, from);
  const at::Tensor bytes = at::empty({size.item<int64_t>()}, at::kByte);
  group.Receive(bytes, from);
  return {static_cast<const char*>(bytes.const_data_ptr()), static_cast<size_t>(bytes.numel())};
}

std::string BroadcastText(parallel::Communicator& group, const std::string& text) {
  at::Tensor size = at::scalar_tensor(static_cast<int64_t>(text.size()), at::kLong).view({1});
  group.Broadcast(size, 0);
  const at::Tensor bytes = at::empty({size.item<int64_t>()}, at::kByte);
  if (group.rank() == 0) std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  group.Broadcast(bytes, 0);
  return {static_cast<const char*>(bytes.const_data_ptr()), static_cast<size_t>(bytes.numel())};
}

json Describe(const std::vector<Piece>& pieces) {
  json list = json::array();
  for (const Piece& piece : pieces) {
    list.push_back({{"name", piece.name},
                    {"dtype", static_cast<int>(piece.tensor.scalar_type())},
                    {"shape", piece.tensor.sizes().vec()},
                    {"dim", piece.split.dim},
                    {"blocks", piece.split.blocks}});
  }
  return list;
}

Piece Allocate(const json& item) {
  return {item["name"].get<std::string>(),
          at::empty(item["shape"].get<std::vector<int64_t>>(),
                    static_cast<at::ScalarType>(item["dtype"].get<int>())),
          {item["dim"].get<int>(), item["blocks"].get<int64_t>()}};
}

void SendPieces(parallel::Communicator& world, const std::vector<Piece>& pieces) {
  SendText(world, Describe(pieces).dump(), 0);
  for (const Piece& piece : pieces) world.Send(piece.tensor.contiguous(), 0);
}

std::vector<Piece> ReceivePieces(parallel::Communicator& world, int64_t from) {
  std::vector<Piece> pieces;
  for (const json& item : json::parse(ReceiveText(world, from))) {
    pieces.push_back(Allocate(item));
    world.Receive(pieces.back().tensor, from);
  }
  return pieces;
}

// Puts the parts of the tensor-parallel ranks together.
class Assembly {
 public:
  explicit Assembly(int64_t tensor_size) : tensor_size_(tensor_size) {}

  void Add(const Piece& piece, int64_t tensor_rank) {
    if (piece.split.dim < 0 && tensor_rank > 0) return;  // all have the same
    const auto [place, added] = index_.try_emplace(piece.name, whole_.size());
    if (added) {
      std::vector<int64_t> shape = piece.tensor.sizes().vec();
      if (piece.split.dim >= 0) shape[static_cast<size_t>(piece.split.dim)] *= tensor_size_;
      whole_.push_back({piece.name, at::empty(shape, piece.tensor.scalar_type()), piece.split});
    }
    const at::Tensor part =
        model::ShardView(whole_[place->second].tensor, piece.split, {tensor_rank, tensor_size_});
    part.copy_(piece.tensor.reshape(part.sizes()));
  }

  engine::State Finish() const {
    engine::State state;
    for (const Piece& piece : whole_) {
      const size_t dot = piece.name.find('.');
      const std::string section = piece.name.substr(0, dot), name = piece.name.substr(dot + 1);
      if (section == "model") {
        model::Parameter parameter;
        parameter.name = name;
        parameter.value = piece.tensor;
        state.parameters.push_back(std::move(parameter));
      } else {
        (section == "fp8" ? state.fp8 : state.optimizer).emplace_back(name, piece.tensor);
      }
    }
    return state;
  }

 private:
  int64_t tensor_size_;
  std::vector<Piece> whole_;  // in the order of arrival
  std::map<std::string, size_t> index_;
};

}  // namespace

engine::State FetchWhole(Run& run, engine::Contents contents) {
  const parallel::ParallelSizes& sizes = run.groups.sizes;
  const parallel::Coordinate& mine = run.groups.coordinate;
  const bool first = mine.data == 0 && mine.context == 0;  // the others have the same
  if (!first && !run.engine->SharesOptimizerState()) return {};
  engine::State state = run.engine->Fetch(contents);
  if (!first) return {};
  if (sizes.tensor * sizes.pipeline == 1) return state;
  if (!run.IsFirstRank()) {
    SendPieces(*run.groups.world, PiecesOf(state, /*with_duplicates=*/false));
    return {};
  }
  Assembly assembly(sizes.tensor);
  for (int64_t stage = 0; stage < sizes.pipeline; ++stage) {
    for (int64_t tensor = 0; tensor < sizes.tensor; ++tensor) {
      const int64_t rank = parallel::RankOf(sizes, {.tensor = tensor, .pipeline = stage});
      const std::vector<Piece> pieces = rank == 0 ? PiecesOf(state, /*with_duplicates=*/false)
                                                  : ReceivePieces(*run.groups.world, rank);
      for (const Piece& piece : pieces) assembly.Add(piece, tensor);
    }
  }
  return assembly.Finish();
}

void StoreWhole(Run& run, const engine::State& whole, engine::Contents contents) {
  parallel::Communicator& world = *run.groups.world;
  const std::vector<Piece> sent = PiecesOf(whole, /*with_duplicates=*/true);
  // Where rank 0 has all of the model, the whole state is its own: it need not be there twice.
  const bool own =
      run.IsFirstRank() && run.groups.model->size() == 1 && !run.engine->SharesOptimizerState();
  engine::State state = own ? whole : run.engine->Fetch(contents);
  std::map<std::string, Piece> mine;
  for (const Piece& piece : PiecesOf(state, /*with_duplicates=*/true)) mine[piece.name] = piece;
  const model::Share share = {run.groups.coordinate.tensor, run.groups.sizes.tensor};
  bool optimizer = false, fp8 = false;
  size_t next = 0;
  for (const json& item : json::parse(BroadcastText(world, Describe(sent).dump()))) {
    // Not every part of a state is contiguous, and a collective takes nothing else.
    const Piece piece =
        world.rank() == 0 ? Piece{item["name"].get<std::string>(), sent[next++].tensor.contiguous()}
                          : Allocate(item);
    world.Broadcast(piece.tensor, 0);
    optimizer = optimizer || piece.name.starts_with("optimizer.");
    fp8 = fp8 || piece.name.starts_with("fp8.");
    const auto place = mine.find(piece.name);
    if (own || place == mine.end()) continue;
    const at::Tensor part = model::ShardView(piece.tensor, place->second.split, share);
    place->second.tensor.copy_(part.reshape(place->second.tensor.sizes()));
  }
  if (!optimizer) state.optimizer.clear();
  if (!fp8) state.fp8.clear();
  run.engine->Store(state);
}

}  // namespace muster::loop
