#include "trainer/device/head.h"

namespace muster::device {
namespace {

constexpr int64_t kChunkStep = 16;  // tokens; keeps chunks aligned

// The fewest equal chunks of at most head_tokens tokens; a single one where none are equal.
int64_t Chunks(const Shape& shape) {
  const int64_t tokens = shape.tokens();
  for (int64_t n = 1; n * kChunkStep <= tokens; ++n) {
    if (tokens % (n * kChunkStep) == 0 && tokens / n <= shape.head_tokens) return n;
  }
  return 1;
}

fp8::cuda::LinearGemms Gemms(const Shape& shape, int64_t chunks) {
  return fp8::cuda::Bf16LinearGemms({shape.tokens() / chunks, shape.vocab(), shape.hidden()},
                                    fp8::cuda::ElementType::kFp32);
}

}  // namespace

Head::Head(Ops* ops, const Shape& shape, const Workspace* workspace, const Weight* norm,
           const Weight* weight)
    : ops_(ops),
      shape_(shape),
      ws_(*workspace),
      norm_(norm),
      chunks_(Chunks(shape)),
      linear_(ops, weight, Gemms(shape, chunks_)) {}

void Head::Plan(Planner& planner) {
  const int64_t T = shape_.tokens(), C = shape_.hidden();
  planner.Want(&input_, "head.input", T * C, kForwardStart, kHeadNormBackward);
  planner.Want(&rstd_, "head.rstd", T, kHeadNorm, kHeadNormBackward);
  planner.Want(&normed_, "head.normed", T * C, kHeadNorm, kHead);
  planner.Want(&dnormed_, "head.dnormed", T * C, kHead, kHeadNormBackward);
  planner.Want(&logits_, "head.logits", T / chunks_ * shape_.vocab(), kHead, kHead);
  planner.Want(&losses_, "head.losses", T, kHead, kHead);
}

void Head::AppendProducts(std::vector<fp8::cuda::GemmSpec>& specs) const {
  linear_.AppendProducts(specs);
}

void Head::Forward(const int64_t* labels, const float* mask, Pass pass, double* sums) {
  ops_->RmsNormForward(shape_.Norm(), input_, norm_->copy, normed_, rstd_);
  const int64_t rows = shape_.tokens() / chunks_;
  for (int64_t start = 0; start < shape_.tokens(); start += rows) {
    const Bfloat16* const x = normed_ + start * shape_.hidden();
    linear_.Forward({x, x, nullptr}, logits_);
    ops_->CrossEntropy(rows, shape_.vocab(), logits_, labels + start, mask + start,
                       pass != Pass::kEvaluation, losses_ + start);
    if (pass == Pass::kEvaluation) continue;
    const Operand dlogits{logits_, logits_, nullptr};
    linear_.InputGradient(dlogits, dnormed_ + start * shape_.hidden());
    linear_.WeightGradient(dlogits, {x, x, nullptr}, pass == Pass::kFirst && start == 0);
  }
  ops_->AddLosses(shape_.tokens(), losses_, mask, sums);
}

Operand Head::Backward(const StreamGradient& gradient, int64_t consumer) {
  ops_->Zero(ws_.gradient, shape_.tokens() * shape_.hidden() * 2);
  return gradient.AddNorm(*norm_, dnormed_, input_, rstd_, consumer);
}

}  // namespace muster::device
