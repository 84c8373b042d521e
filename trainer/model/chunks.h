#pragma once

#include <cstdint>
#include <vector>

#include "trainer/config/layer_split.h"
#include "trainer/model/parameter_spec.h"

namespace muster::model {

// What a pipeline stage has of the model, in the order of its chunks: the first chunk of the first
// stage also the embedding, the last one of the last stage also the head.
inline std::vector<Chunk> ChunksOfStage(const config::LayerSplit& split, int64_t stage) {
  std::vector<Chunk> mine;
  int64_t next = 0;
  for (size_t chunk = 0; chunk < split.front().size(); ++chunk) {
    for (size_t s = 0; s < split.size(); ++s) {
      const int64_t layers = split[s][chunk];
      if (static_cast<int64_t>(s) == stage) {
        mine.push_back({.first_layer = next,
                        .end_layer = next + layers,
                        .embedding = chunk == 0 && s == 0,
                        .head = chunk + 1 == split.front().size() && s + 1 == split.size()});
      }
      next += layers;
    }
  }
  return mine;
}

}  // namespace muster::model
