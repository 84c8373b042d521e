#pragma once

#include "controller/plan/model_shape.h"
#include "controller/plan/sizes.h"

namespace muster::plan {

// What memory and time are made of: one micro-batch on one rank, before tensor parallelism divides
// it. Doubles, since they only go into products.
struct Widths {
  double tokens = 0;
  double hidden = 0;
  double attention = 0;  // all query heads
  double keys = 0;       // keys and values
  double heads = 0;
  double ffn = 0;

  double Qkv() const { return attention + keys; }
};

inline Widths WidthsOf(const ModelShape& m, const Sizes& s) {
  Widths w;
  w.tokens = static_cast<double>(m.seq) * s.micro_batch / s.cp;
  w.hidden = m.hidden;
  w.attention = static_cast<double>(m.heads) * m.head_dim;
  w.keys = 2.0 * m.groups * m.head_dim;
  w.heads = m.heads;
  w.ffn = m.ffn;
  return w;
}

}  // namespace muster::plan
