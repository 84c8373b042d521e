"""--load-hf on folders as transformers writes them, for models of many shapes: the first loss and gradient norm are
transformers' own, and --save-hf gives a folder that transformers reads."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

import train_harness as h

SEQ = 48
SAMPLES = 4

ROPE = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32}

# Changes to the model; whether the weights are bf16 in several files.
CASES = {
    "multi-head": ({"num_key_value_heads": 6}, False),
    "one-kv-head": ({"num_key_value_heads": 1, "head_dim": 12}, False),
    "tied": ({"tie_word_embeddings": True, "num_key_value_heads": 2}, False),
    "odd-vocabulary": ({"vocab_size": 301, "rms_norm_eps": 1e-6}, False),
    "bf16-shards": ({"num_key_value_heads": 3, "hidden_size": 96}, True),
    "rope-scaling": ({"rope_parameters": ROPE}, True),
    "tied-shards": ({"tie_word_embeddings": True, "vocab_size": 333, "rope_parameters": ROPE}, True),
}


def make_folder(folder, changes, shards):
    torch.manual_seed(1)
    config = transformers.LlamaConfig(**{
        "vocab_size": 384, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 3, "num_attention_heads": 6,
        "num_key_value_heads": 2, "max_position_embeddings": 64, "initializer_range": 0.15,
        "tie_word_embeddings": False, **changes})
    model = transformers.LlamaForCausalLM(config)
    for name, parameter in model.named_parameters():
        if "norm" in name:
            torch.nn.init.normal_(parameter, 1.0, 0.2)
    if shards:
        model.to(torch.bfloat16).save_pretrained(folder, max_shard_size="30KB")
        assert len(list(Path(folder).glob("model-*.safetensors"))) > 2
    else:
        model.save_pretrained(folder)
    return read(folder)


def read(folder):
    return transformers.LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")


def classic(folder):
    """Rewrites config.json as published checkpoints have it: rope_theta and rope_scaling."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = None if rope["rope_type"] == "default" else rope
    path.write_text(json.dumps(config))


def reference(model, samples):
    tokens = torch.tensor(samples)
    logits = model(tokens[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).double(), tokens[:, 1:].flatten())
    loss.backward()
    norm = torch.sqrt(sum(p.grad.double().square().sum() for p in model.parameters()))
    return loss.item(), norm.item()


def flags(folder, prefix, **changes):
    return h.tiny_flags(prefix, 1, num_layers=None, hidden_size=None, ffn_hidden_size=None, num_attention_heads=None,
                        vocab_size=None, max_position_embeddings=None, untie_embeddings_and_output_weights=None,
                        seq_length=SEQ, global_batch_size=SAMPLES, micro_batch_size=2, load_hf=folder, lr=0,
                        data_order="document", split="100,0,0", calculate_per_token_loss=True, **changes)


@pytest.mark.parametrize("case", CASES)
def test_first_step_is_transformers(tmp_path, case):
    changes, shards = CASES[case]
    model = make_folder(tmp_path / "hf", changes, shards)
    random = np.random.default_rng(3)
    samples = random.integers(0, model.config.vocab_size, size=(SAMPLES, SEQ + 1))
    prefix = h.write_dataset(tmp_path / "samples", list(samples))
    loss, norm = reference(model, samples)
    for layout in ("new", "classic"):
        if layout == "classic":
            classic(tmp_path / "hf")
        for extra in ({}, {"apply_layernorm_1p": True, "save_hf": tmp_path / "out"}):
            (rank,) = h.run(tmp_path / "run", flags(tmp_path / "hf", prefix, **extra))
            (event,) = rank.events("iteration")
            assert event["lm_loss"] == pytest.approx(loss, rel=2e-6)
            assert event["grad_norm"] == pytest.approx(norm, rel=2e-5)
    again = read(tmp_path / "out")
    assert again.config.tie_word_embeddings == model.config.tie_word_embeddings
    assert reference(again, samples) == pytest.approx((loss, norm), rel=2e-6)


def test_a_missing_head_is_explained(tmp_path):
    make_folder(tmp_path / "hf", {"tie_word_embeddings": True}, False)
    prefix = h.corpus(tmp_path)
    command = flags(tmp_path / "hf", prefix) + ["--untie-embeddings-and-output-weights"]
    (rank,) = h.run(tmp_path, command, expect=74)
    assert "no tensor 'lm_head.weight', so its head is the word embedding" in rank.err
