#include "trainer/config/flag_field.h"
#include "trainer/config/flag_table.h"

namespace muster::config {
namespace {

Flag Size(std::string_view name, IntRef ref, std::string_view help, double minimum = 1) {
  return {name, Group::kModel, ref, help, minimum};
}

}  // namespace

std::vector<Flag> ModelFlags() {
  const Group group = Group::kModel;
  return {
      Size("num-layers", FIELD(model.num_layers), "transformer layers"),
      Size("hidden-size", FIELD(model.hidden_size), "width of the model"),
      Size("ffn-hidden-size", FIELD(model.ffn_hidden_size),
           "width of the MLP (default: 4 * hidden * 2/3, down to a multiple of 64)"),
      Size("num-attention-heads", FIELD(model.num_attention_heads), "query heads"),
      {"group-query-attention", group, BoolRef(FIELD(group_query_attention)),
       "several query heads share a key and value head"},
      Size("num-query-groups", FIELD(model.num_query_groups),
           "key and value heads; counts only with --group-query-attention (default there: 1)"),
      Size("kv-channels", FIELD(model.kv_channels), "width of a head (default: hidden / heads)"),
      Size("seq-length", FIELD(model.seq_length), "tokens in a sample"),
      Size("max-position-embeddings", FIELD(model.max_position_embeddings),
           "longest sequence; at least --seq-length"),
      {"position-embedding-type",
       group,
       StringRef(FIELD(position_embedding_type)),
       "rotary embeddings are the only kind",
       {},
       {"rope"}},
      {"rotary-base", group, DoubleRef(FIELD(model.rotary_base)), "theta; Llama-3 uses 500000", 1},
      {"rotary-percent", group, DoubleRef(FIELD(rotary_percent)), "must be 1", 0},
      {"use-rope-scaling", group, BoolRef(FIELD(model.rope_scaling.enabled)),
       "Llama-3.1's frequency scaling"},
      {"rope-scaling-factor", group, DoubleRef(FIELD(model.rope_scaling.factor)),
       "factor of --use-rope-scaling", 1},
      {"normalization",
       group,
       StringRef(FIELD(normalization)),
       "RMSNorm is the only kind",
       {},
       {"RMSNorm"}},
      {"norm-epsilon", group, DoubleRef(FIELD(model.norm_epsilon)), "added under the root", 0},
      {"apply-layernorm-1p",
       group,
       BoolRef(FIELD(model.apply_layernorm_1p)),
       "norm weights hold gamma - 1",
       {},
       {},
       {"layernorm-zero-centered-gamma"}},
      {"untie-embeddings-and-output-weights", group,
       BoolRef(FIELD(model.untie_embeddings_and_output_weights)),
       "the head has its own matrix instead of the embedding's"},
      {"attention-dropout", group, DoubleRef(FIELD(attention_dropout)), "must be 0", 0},
      {"hidden-dropout", group, DoubleRef(FIELD(hidden_dropout)), "must be 0", 0},
      {"init-method-std", group, DoubleRef(FIELD(model.init_method_std)),
       "deviation of the initial weights; output layers have it divided by sqrt(2 * layers)", 0},
      Size("vocab-size", FIELD(vocab_size), "vocabulary (default: the tokenizer's)"),
      Size("make-vocab-size-divisible-by", FIELD(make_vocab_size_divisible_by),
           "the vocabulary is padded to a multiple of this"),
      {"seed", group, IntRef(FIELD(seed)), "of the initial weights and of the data order", 1},
  };
}

}  // namespace muster::config
