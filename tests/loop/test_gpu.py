"""muster-train --device cuda: the CPU's losses, its checkpoints, and two ranks that equal one. Skipped without a GPU."""

import os
import shutil
import subprocess

import pytest

import train_harness as h

pytestmark = pytest.mark.skipif(
    shutil.which("nvidia-smi") is None or subprocess.run(["nvidia-smi", "-L"], capture_output=True).returncode != 0,
    reason="no GPU")

SIZES = {"hidden_size": 128, "ffn_hidden_size": 256, "num_attention_heads": 2, "kv_channels": 64, "seq_length": 64,
         "max_position_embeddings": 64, "micro_batch_size": 2, "global_batch_size": 8, "bf16": True,
         "calculate_per_token_loss": True, "exp_avg_dtype": "fp32"}
CASES = {
    "bf16": {},
    "fp8-delayed": h.FP8_DELAYED,
    "fp8-tensorwise": {"fp8_format": "hybrid", "fp8_recipe": "tensorwise"},
}


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    return h.corpus(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def tunings(tmp_path_factory):
    return tmp_path_factory.mktemp("tunings") / "gemms.txt"


def trail(ranks):
    return [(e["iteration"], e["lm_loss"], e["grad_norm"]) for e in ranks[0].events("iteration")]


@pytest.mark.parametrize("case", CASES)
def test_trains_as_the_cpu_does_and_continues_anywhere(tmp_path, prefix, tunings, case):
    cpu = dict(SIZES, **CASES[case])
    gpu = dict(cpu, device="cuda", deterministic_mode=True, gemm_tuning_cache=tunings)
    reference = h.run(tmp_path / "cpu", h.tiny_flags(prefix, 6, eval_iters=2, **cpu))
    whole = h.run(tmp_path / "whole", h.tiny_flags(prefix, 6, eval_iters=2, **gpu))
    # Losses are means over 500 tokens; FP8's noise in them is some 1e-3.
    assert h.losses(whole[0]) == pytest.approx(h.losses(reference[0]), rel=5e-3)
    assert [e["lm_loss"] for e in whole[0].events("validation")] == pytest.approx(
        [e["lm_loss"] for e in reference[0].events("validation")], rel=1e-2)

    save = {"save": tmp_path / "ckpt", "load": tmp_path / "ckpt"}
    first = h.run(tmp_path / "first", h.tiny_flags(prefix, 6, exit_interval=3, **save, **gpu))
    elsewhere = h.run(tmp_path / "there", h.tiny_flags(prefix, 6, load=tmp_path / "ckpt", **cpu))
    second = h.run(tmp_path / "second", h.tiny_flags(prefix, 6, **save, **gpu))
    assert trail(first) + trail(second) == trail(whole)
    assert h.losses(elsewhere[0]) == pytest.approx(h.losses(whole[0])[3:], rel=5e-3)


LLAMA_1B = {"num_layers": 16, "hidden_size": 2048, "ffn_hidden_size": 8192, "num_attention_heads": 32, "group_query_attention": True,
            "num_query_groups": 8, "kv_channels": 64, "vocab_size": 128256, "untie_embeddings_and_output_weights": None,
            "rotary_base": 500000, "global_batch_size": 2, "micro_batch_size": 1, "lr": 1e-4}


@pytest.mark.skipif(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 28 << 30 and "MUSTER_LARGE_TESTS" not in os.environ,
                    reason="the CPU's side needs 28 GiB; MUSTER_LARGE_TESTS=1 where memory grows with use")
def test_the_1b_trains_as_on_the_cpu(tmp_path, prefix, tunings):
    cpu = {**SIZES, **CASES["fp8-delayed"], **LLAMA_1B}
    reference, gpu = (h.run(tmp_path / device, h.tiny_flags(prefix, 3, **dict(cpu, device=device, gemm_tuning_cache=tunings)), timeout=480)
                      for device in ("cpu", "cuda"))
    print([a[1:] for a in trail(reference)], [a[1:] for a in trail(gpu)])
    # Means over 128 tokens: the noise of FP8 in them is a few 1e-3.
    assert h.losses(gpu[0]) == pytest.approx(h.losses(reference[0]), rel=5e-3)
    assert [n for _, _, n in trail(gpu)] == pytest.approx([n for _, _, n in trail(reference)], rel=5e-2)


def test_two_ranks_on_one_gpu_equal_one(tmp_path, prefix, tunings):
    flags = h.tiny_flags(prefix, 3, **dict(SIZES, device="cuda", deterministic_mode=True, gemm_tuning_cache=tunings))
    one, two = (h.run(tmp_path / str(world), flags, world) for world in (1, 2))
    # fp32 gradients in another order, and products of the same shapes: the first loss is the same to the bit.
    assert h.losses(two[0])[0] == pytest.approx(h.losses(one[0])[0], rel=1e-12)
    assert h.losses(two[0]) == pytest.approx(h.losses(one[0]), rel=1e-3)
    assert trail(two[:1])[0][2] == pytest.approx(trail(one)[0][2], rel=1e-6)


def test_refuses_what_the_gpu_cannot_do(tmp_path, prefix):
    ranks = h.run(tmp_path, h.tiny_flags(prefix, 1, **dict(SIZES, device="cuda", hidden_size=120)), expect=64)
    assert "multiples of 16" in ranks[0].error()["message"]
