#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "trainer/kernels/cuda/attention.h"

namespace muster::kernels::cuda {

// Causal attention and its gradients in double, one row at a time, so that rows of large problems
// can be checked too. Straight from the definition.
class AttentionReference {
 public:
  struct QueryRow {
    std::vector<double> out, dq;
    double logsumexp;
  };
  struct KeyRow {
    std::vector<double> dk, dv;
  };

  AttentionReference(const AttentionSpec& spec, std::vector<double> qkv, std::vector<double> dout)
      : spec_(spec), qkv_(std::move(qkv)), dout_(std::move(dout)) {}

  // What Key takes for rows it does not compute itself: results of forward, which Query checks.
  void UseForward(std::vector<double> out, std::vector<float> logsumexp) {
    out_ = std::move(out);
    logsumexp_ = std::move(logsumexp);
  }

  // Row i of query head h of sequence b.
  QueryRow Query(int64_t b, int64_t h, int64_t i) const {
    const int64_t g = h / (spec_.heads / spec_.kv_heads);
    const auto count = static_cast<size_t>(i + 1);
    std::vector<double> p(count);
    double largest = -INFINITY, sum = 0;
    for (size_t j = 0; j < count; ++j) {
      p[j] = Score(b, h, i, static_cast<int64_t>(j));
      largest = std::fmax(largest, p[j]);
    }
    for (double& x : p) sum += x = std::exp(x - largest);
    for (double& x : p) x /= sum;

    QueryRow row{Zeros(), Zeros(), largest + std::log(sum)};
    for (size_t j = 0; j < count; ++j) {
      AddTo(row.out, p[j], Row(b, static_cast<int64_t>(j), spec_.heads + spec_.kv_heads + g));
    }
    const double delta = Dot(Dout(b, h, i), row.out.data());
    for (size_t j = 0; j < count; ++j) {
      const auto key = static_cast<int64_t>(j);
      const double dp = Dot(Dout(b, h, i), Row(b, key, spec_.heads + spec_.kv_heads + g));
      AddTo(row.dq, Scale() * p[j] * (dp - delta), Row(b, key, spec_.heads + g));
    }
    return row;
  }

  // Row j of KV head g of sequence b.
  KeyRow Key(int64_t b, int64_t g, int64_t j) const {
    KeyRow row{Zeros(), Zeros()};
    const int64_t heads = spec_.heads / spec_.kv_heads;
    for (int64_t h = g * heads; h < (g + 1) * heads; ++h) {
      for (int64_t i = j; i < spec_.positions; ++i) {
        const int64_t at = (b * spec_.positions + i) * spec_.heads + h;
        const double lse =
            logsumexp_[static_cast<size_t>((b * spec_.heads + h) * spec_.positions + i)];
        const double p = std::exp(Score(b, h, i, j) - lse);
        const double delta = Dot(Dout(b, h, i), out_.data() + at * spec_.head_dim);
        const double dp = Dot(Dout(b, h, i), Row(b, j, spec_.heads + spec_.kv_heads + g));
        AddTo(row.dv, p, Dout(b, h, i));
        AddTo(row.dk, Scale() * p * (dp - delta), Row(b, i, h));
      }
    }
    return row;
  }

 private:
  std::vector<double> Zeros() const {
    return std::vector<double>(static_cast<size_t>(spec_.head_dim));
  }
  double Scale() const { return 1 / std::sqrt(static_cast<double>(spec_.head_dim)); }
  // Head `head` of the packed row of a token.
  const double* Row(int64_t b, int64_t position, int64_t head) const {
    return qkv_.data() + (b * spec_.positions + position) * spec_.RowElements() +
           head * spec_.head_dim;
  }
  const double* Dout(int64_t b, int64_t h, int64_t i) const {
    return dout_.data() + ((b * spec_.positions + i) * spec_.heads + h) * spec_.head_dim;
  }
  double Dot(const double* x, const double* y) const {
    double sum = 0;
    for (int64_t d = 0; d < spec_.head_dim; ++d) sum += x[d] * y[d];
    return sum;
  }
  void AddTo(std::vector<double>& sum, double factor, const double* x) const {
    for (size_t d = 0; d < sum.size(); ++d) sum[d] += factor * x[d];
  }
  double Score(int64_t b, int64_t h, int64_t i, int64_t j) const {
    const int64_t g = h / (spec_.heads / spec_.kv_heads);
    return Scale() * Dot(Row(b, i, h), Row(b, j, spec_.heads + g));
  }

  AttentionSpec spec_;
  std::vector<double> qkv_, dout_, out_;
  std::vector<float> logsumexp_;
};

}  // namespace muster::kernels::cuda
