#include "trainer/device/model.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "trainer/kernels/rope.h"
#include "trainer/model/parameter_spec.h"

namespace muster::device {
namespace {

void Require(bool ok, const std::string& message) {
  if (!ok) throw std::invalid_argument(message);
}

void Check(const Shape& shape) {
  const config::ModelConfig& m = shape.model;
  model::Validate(m);
  Require(m.kv_channels % 16 == 0,
          fmt::format("--kv-channels {}: --device cuda takes multiples of 16", m.kv_channels));
  for (const auto& [flag, size] : {std::pair<const char*, int64_t>{"--hidden-size", m.hidden_size},
                                   {"--ffn-hidden-size", m.ffn_hidden_size},
                                   {"the padded vocabulary size", m.padded_vocab_size},
                                   {"--micro-batch-size * --seq-length", shape.tokens()}}) {
    Require(size % 16 == 0, fmt::format("{} {}: --device cuda takes multiples of 16", flag, size));
  }
}

}  // namespace

Model::Model(std::unique_ptr<Ops> ops, const Shape& shape, const StateTypes& types,
             parallel::Communicator* amax_group)
    : ops_(std::move(ops)), shape_(shape) {
  Check(shape_);
  if (shape_.fp8()) {
    scaler_ = std::make_unique<Scaler>(ops_.get(), shape_.model.fp8,
                                       Weights::LinearNames(shape_.model), amax_group);
  }
  weights_ = std::make_unique<Weights>(ops_.get(), scaler_.get(), shape_, types);
  MakeLayers();
  MakeMemory();
  MakeAngles();
  if (scaler_) scaler_->Reset();
  weights_->Initialize();
  weights_->Convert();
}

void Model::MakeLayers() {
  const auto find = [this](const std::string& name) { return &weights_->Find(name); };
  for (int64_t layer = 0; layer < shape_.model.num_layers; ++layer) {
    const std::string prefix = model::LayerPrefix(layer);
    const Block::Parts parts{find(prefix + "self_attention.linear_qkv.layer_norm_weight"),
                             find(prefix + "self_attention.linear_qkv.weight"),
                             find(prefix + "self_attention.linear_proj.weight"),
                             find(prefix + "mlp.linear_fc1.layer_norm_weight"),
                             find(prefix + "mlp.linear_fc1.weight"),
                             find(prefix + "mlp.linear_fc2.weight")};
    blocks_.push_back(std::make_unique<Block>(ops_.get(), scaler_.get(), shape_, &workspace_,
                                              layer < shape_.recomputed_layers ? &shared_ : nullptr,
                                              parts, weights_->types()));
  }
  const bool untied = shape_.model.untie_embeddings_and_output_weights;
  head_ = std::make_unique<Head>(ops_.get(), shape_, &workspace_, find(model::kFinalNormName),
                                 find(untied ? model::kHeadName : model::kEmbeddingName));
}

void Model::MakeMemory() {
  std::vector<fp8::cuda::GemmSpec> products;
  blocks_.front()->AppendProducts(products);
  head_->AppendProducts(products);
  ops_->Prepare(products, shape_.Qkv(), shape_.hidden());

  Planner planner;
  weights_->Plan(planner);
  if (scaler_) scaler_->Plan(planner);
  workspace_.Plan(planner, shape_);
  if (shape_.recomputed_layers > 0) shared_.Plan(planner, shape_, "recomputed.", false);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    blocks_[i]->Plan(planner, model::LayerPrefix(static_cast<int64_t>(i)));
  }
  head_->Plan(planner);
  const int64_t tokens = shape_.tokens();
  planner.Want(&inputs_.tokens, "tokens", tokens);
  planner.Want(&inputs_.labels, "labels", tokens);
  planner.Want(&inputs_.mask, "mask", tokens);
  planner.Want(&inputs_.group_tokens, "group_tokens", tokens);
  planner.Want(&inputs_.group_starts, "group_starts", tokens + 1);
  planner.Want(&inputs_.group_positions, "group_positions", tokens);
  planner.Want(&sums_, "sums", 2);
  std::byte* workspace = nullptr;
  planner.Want(&workspace, "workspace", ops_->WorkspaceBytes());
  memory_bytes_ = planner.LayOut();
  planner.Bind(ops_->Allocate(memory_bytes_));
  ops_->UseWorkspace(workspace);
  weights_->Bind();
}

void Model::MakeAngles() {
  const config::ModelConfig& m = shape_.model;
  const kernels::RopeTable<float> table = kernels::MakeRopeTable<float>(
      m.seq_length, kernels::RopeFrequencies(m.kv_channels, m.rotary_base, m.rope_scaling));
  const auto bytes = static_cast<int64_t>(table.cos.size() * sizeof(float));
  ops_->Upload(const_cast<float*>(workspace_.cos), table.cos.data(), bytes);
  ops_->Upload(const_cast<float*>(workspace_.sin), table.sin.data(), bytes);
}

void Model::BeginSums() {
  ops_->Zero(sums_, 2 * sizeof(double));
}

Model::Sums Model::TakeSums() {
  double sums[2];
  ops_->Download(sums, sums_, sizeof(sums));
  return {sums[0], sums[1]};
}

void Model::BeginIteration() {
  // Those of matrices are written, not added to, by the first micro-batch.
  const bool untied = shape_.model.untie_embeddings_and_output_weights;
  for (const Weight& weight : weights_->all()) {
    const bool is_embedding = &weight == &weights_->all().front();
    if (weight.rows > 1 && !(is_embedding && untied)) continue;  // of what remains, all is fp32
    ops_->Zero(weight.grad, weight.count() * 4);
  }
  next_pass_ = Pass::kFirst;
  BeginSums();
}

void Model::Load(const data::Batch& batch) {
  const int64_t tokens = shape_.tokens();
  if (batch.tokens_BS.numel() != tokens || batch.labels_BS.numel() != tokens ||
      batch.loss_mask_BS.numel() != tokens) {
    throw std::invalid_argument(
        fmt::format("a micro-batch must have {} tokens, not {}", tokens, batch.tokens_BS.numel()));
  }
  if (batch.position_ids_BS.defined() || !batch.cu_seqlens.empty()) {
    throw std::invalid_argument("the planned model takes rows of positions 0 .. S-1 alone");
  }
  const at::Tensor host_tokens = batch.tokens_BS.contiguous();
  const at::Tensor host_labels = batch.labels_BS.contiguous();
  const at::Tensor host_mask = batch.loss_mask_BS.to(at::kFloat).contiguous();
  const auto* const labels = host_labels.const_data_ptr<int64_t>();
  const auto* const mask = host_mask.const_data_ptr<float>();
  for (int64_t i = 0; i < tokens; ++i) {
    if (mask[i] == 0 || (labels[i] >= 0 && labels[i] < shape_.vocab())) continue;
    throw std::out_of_range(fmt::format("label {} at token {} is outside the vocabulary of {}",
                                        labels[i], i, shape_.vocab()));
  }
  const kernels::TokenGroups groups =
      kernels::GroupTokens(tokens, host_tokens.const_data_ptr<int64_t>(), shape_.vocab());
  const auto upload = [this]<typename T>(T* to, const T* from, size_t count) {
    ops_->Upload(to, from, static_cast<int64_t>(count * sizeof(T)));
  };
  const auto count = static_cast<size_t>(tokens);
  upload(inputs_.tokens, host_tokens.const_data_ptr<int64_t>(), count);
  upload(inputs_.labels, labels, count);
  upload(inputs_.mask, mask, count);
  upload(inputs_.group_tokens, groups.tokens.data(), groups.tokens.size());
  upload(inputs_.group_starts, groups.starts.data(), groups.starts.size());
  upload(inputs_.group_positions, groups.positions.data(), count);
  inputs_.groups = static_cast<int64_t>(groups.tokens.size());
}

void Model::Forward(Pass pass) {
  const Weight& embedding = weights_->all().front();
  ops_->EmbeddingForward(shape_.tokens(), shape_.hidden(), inputs_.tokens, embedding.copy,
                         blocks_.front()->input());
  for (size_t i = 0; i < blocks_.size(); ++i) {
    blocks_[i]->Forward(i + 1 < blocks_.size() ? blocks_[i + 1]->input() : head_->input(),
                        pass == Pass::kEvaluation ? Run::kEvaluation : Run::kTraining);
  }
  head_->Forward(inputs_.labels, inputs_.mask, pass, sums_);
}

void Model::Train(Pass pass) {
  Forward(pass);
  if (scaler_) scaler_->AfterForward();
  const StreamGradient gradient(ops_.get(), scaler_.get(), shape_.Norm(), &workspace_);
  Operand dy = head_->Backward(gradient, blocks_.back()->output_linear());
  for (size_t i = blocks_.size(); i-- > 0;) {
    const int64_t consumer = i > 0 ? blocks_[i - 1]->output_linear() : -1;
    dy = blocks_[i]->Backward(gradient, dy, consumer, pass == Pass::kFirst);
  }
  if (scaler_) scaler_->AfterBackward();
}

void Model::ForwardBackward(const data::Batch& batch) {
  Load(batch);
  const Pass pass = std::exchange(next_pass_, Pass::kNext);
  if (scaler_ && scaler_->UsesHost()) {
    Train(pass);
  } else {
    ops_->Replay(static_cast<int>(pass), [&] { Train(pass); });
  }
  ops_->EmbeddingGroupsBackward(inputs_.groups, shape_.hidden(), inputs_.group_tokens,
                                inputs_.group_starts, inputs_.group_positions, workspace_.gradient,
                                weights_->all().front().grad);
}

void Model::Evaluate(const data::Batch& batch) {
  Load(batch);
  Forward(Pass::kEvaluation);
}

}  // namespace muster::device
