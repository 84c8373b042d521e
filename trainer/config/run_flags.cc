#include "trainer/config/flag_field.h"
#include "trainer/config/flag_table.h"

namespace muster::config {

std::vector<Flag> RunFlags() {
  const Group data = Group::kData;
  const Group eval = Group::kEvaluation;
  const Group checkpoint = Group::kCheckpoint;
  const Group log = Group::kLogging;
  return {
      {"data-path", data, ListRef(FIELD(data_path)),
       "PREFIX, or PREFIX.., or WEIGHT PREFIX WEIGHT PREFIX .. of .bin/.idx files"},
      {"train-data-path", data, ListRef(FIELD(train_data_path)), "training data by itself"},
      {"valid-data-path", data, ListRef(FIELD(valid_data_path)), "validation data by itself"},
      {"test-data-path", data, ListRef(FIELD(test_data_path)), "test data by itself"},
      {"data-args-path", data, StringRef(FIELD(data_args_path)),
       "file with the words of --data-path"},
      {"per-split-data-args-path", data, StringRef(FIELD(per_split_data_args_path)),
       "JSON file with the words for \"train\", \"valid\" and \"test\""},
      {"mock-data", data, BoolRef(FIELD(mock_data)), "synthetic documents instead of files"},
      {"split", data, StringRef(FIELD(split)), "shares of train, validation and test"},
      {"data-order",
       data,
       StringRef(FIELD(data_order)),
       "shuffled = as --index-order says; sequential = file order; document = sample k is document "
       "k",
       {},
       {"shuffled", "sequential", "document"}},
      {"index-order",
       data,
       StringRef(FIELD(index_order)),
       "how samples are shuffled: megatron = by Megatron's index, up to --index-memory; streamed = "
       "by a computed permutation that needs no memory",
       {},
       {"megatron", "streamed"}},
      {"index-memory", data, StringRef(FIELD(index_memory)),
       "what Megatron's index may take: bytes, or a number with KiB, MiB, GiB, TiB, KB, MB, GB, "
       "TB"},
      {"data-cache-path", data, StringRef(FIELD(data_cache_path)),
       "folder of Megatron's index caches (default: PREFIX/cache/GPTDataset_indices)"},
      {"mid-level-dataset-surplus", data, DoubleRef(FIELD(mid_level_dataset_surplus)),
       "samples that each data set of a blend is built with above its share", 0},
      {"dataloader-type",
       data,
       StringRef(FIELD(dataloader_type)),
       "samples are read in order, as Megatron's single; there is no other",
       {},
       {"single"}},
      {"eod-mask-loss", data, BoolRef(FIELD(eod_mask_loss)), "no loss where the input is EOD"},
      {"reset-position-ids", data, BoolRef(FIELD(reset_position_ids)),
       "positions start again at 0 after each EOD"},
      {"reset-attention-mask", data, BoolRef(FIELD(reset_attention_mask)),
       "attention does not look back across an EOD"},
      {"dataloader-inter-document-masking", data, BoolRef(FIELD(inter_document_masking)),
       "attention and positions start anew with each document, whatever its tokens"},
      {"no-create-attention-mask-in-dataloader", data, BoolRef(FIELD(no_create_attention_mask)),
       "excludes --reset-attention-mask, as in Megatron; no mask is made either way"},
      {"no-mmap-bin-files", data, BoolRef(FIELD(no_mmap_bin_files)),
       "read .bin files instead of mapping them"},
      {"tokenizer-type", data, StringRef(FIELD(tokenizer_type)), "as for muster-preprocess"},
      {"tokenizer-model", data, StringRef(FIELD(tokenizer_model)), "file or folder"},
      {"vocab-file", data, StringRef(FIELD(vocab_file)), "of tokenizers that need one"},
      {"merge-file", data, StringRef(FIELD(merge_file)), "of tokenizers that need one"},
      {"tiktoken-pattern", data, StringRef(FIELD(tiktoken_pattern)), "v1 or v2", {}, {"v1", "v2"}},
      {"tiktoken-num-special-tokens", data, IntRef(FIELD(tiktoken_num_special_tokens)),
       "ids that TikTokenizer keeps for special tokens", 0},
      {"tokenizer-special-tokens", data, ListRef(FIELD(tokenizer_special_tokens)),
       "tokens that muster-preprocess added to a SentencePiece model"},
      {"tokenizer-sentencepiece-legacy", data, BoolRef(FIELD(tokenizer_sentencepiece_legacy)),
       "the SentencePiece model was used with added special tokens"},

      {"eval-iters", eval, IntRef(FIELD(eval_iters)), "iterations of one evaluation; 0 = none", 0},
      {"eval-interval", eval, IntRef(FIELD(eval_interval)), "iterations between evaluations", 1},

      {"save", checkpoint, StringRef(FIELD(save)), "folder for checkpoints"},
      {"save-interval", checkpoint, OptionalIntRef(FIELD(save_interval)),
       "iterations between checkpoints; the end of the run saves too", 1},
      {"load", checkpoint, StringRef(FIELD(load)),
       "folder to resume from: its newest whole checkpoint; none there = start anew"},
      {"exit-on-missing-checkpoint", checkpoint, BoolRef(FIELD(exit_on_missing_checkpoint)),
       "--load without a checkpoint there is an error"},
      {"finetune", checkpoint, BoolRef(FIELD(finetune)),
       "take only the weights from --load and start at iteration 0"},
      {"no-load-optim", checkpoint, BoolRef(FIELD(no_load_optim)),
       "start the optimizer anew when resuming"},
      {"no-save-optim", checkpoint, BoolRef(FIELD(no_save_optim)),
       "leave the optimizer out of checkpoints"},
      {"override-opt_param-scheduler",
       checkpoint,
       BoolRef(FIELD(override_opt_param_scheduler)),
       "resume with another learning rate schedule than the checkpoint's",
       {},
       {},
       {"override-opt-param-scheduler"}},
      {"load-hf", checkpoint, StringRef(FIELD(load_hf)),
       "start from a Hugging Face folder, unless --load finds a checkpoint; sizes that are not "
       "given come from its config.json"},
      {"save-hf", checkpoint, StringRef(FIELD(save_hf)),
       "write the final weights as a Hugging Face folder"},

      {"log-interval", log, IntRef(FIELD(log_interval)), "iterations between log lines", 1},
      {"log-throughput", log, BoolRef(FIELD(log_throughput)), "TFLOP/s in the log line"},
      {"log-energy", log, BoolRef(FIELD(log_energy)),
       "cuda: joules and watts of the GPU in the log line"},
      {"log-all-ranks", log, BoolRef(FIELD(log_all_ranks)),
       "every rank prints a short line of its own as well"},
      {"report-baselines", log, BoolRef(FIELD(report_baselines)),
       "at the end, compare the losses with ln(V) and with the text's unigram entropy"},
  };
}

}  // namespace muster::config
