"""30 iterations through the real program against the independent reference in tests/golden/llama/train."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file

import train_harness as h

TRAIN = h.GOLDEN / "llama/train"


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    samples = load_file(TRAIN / "data.safetensors")["samples"]
    return h.write_dataset(tmp_path_factory.mktemp("data") / "samples", list(samples))


def golden_flags(prefix, micro_batch, *extra):
    t = json.loads((TRAIN / "config.json").read_text())["training"]
    return [
        "--load-hf", h.GOLDEN / "llama/hf", "--data-path", prefix, "--data-order", "document", "--split", "100,0,0",
        "--seq-length", t["seq"], "--micro-batch-size", micro_batch, "--global-batch-size", t["gbs"],
        "--train-samples", t["iters"] * t["gbs"], "--lr-warmup-samples", t["warmup_samples"],
        "--lr-decay-samples", t["decay_samples"], "--lr-decay-style", "cosine", "--lr", t["lr"],
        "--min-lr", t["min_lr"], "--decoupled-lr", t["decoupled_lr"], "--decoupled-min-lr", t["decoupled_min_lr"],
        "--adam-beta1", t["beta1"], "--adam-beta2", t["beta2"], "--adam-eps", t["adam_eps"],
        "--weight-decay", t["weight_decay"], "--clip-grad", t["clip"], "--apply-layernorm-1p", "--params-dtype", "fp32",
        "--calculate-per-token-loss", "--log-interval", 1, "--eval-iters", 0, *extra,
    ]


def check_exact(events, variant, floors):
    golden = json.loads((TRAIN / f"{variant}.json").read_text())["iterations"]
    assert len(events) == len(golden) == 30
    for field, floor in floors.items():
        spread = 0.0
        for event, want in zip(events, golden):
            spread = max(spread, want[f"{field}_spread"])
            target = want[f"{field}_f64"]
            tolerance = max(floor, 5 * spread)
            assert abs(event[field] - target) <= tolerance * abs(target), (variant, field, event, want)
    for event, want in zip(events, golden):
        assert event["tokens"] == want["tokens"]
        assert event["learning_rate"] == pytest.approx(want["lr_used"], rel=1e-12)
        assert event["next_learning_rate"] == pytest.approx(want["lr_logged"], rel=1e-12)


EXACT = {"lm_loss": 1e-6, "grad_norm": 3e-6}


@pytest.mark.parametrize("micro_batch,world", [(1, 1), (2, 1), (1, 4), (2, 4)])
def test_plain(tmp_path, prefix, micro_batch, world):
    ranks = h.run(tmp_path, golden_flags(prefix, micro_batch, "--save-hf", tmp_path / "hf"), world)
    for rank in ranks:
        check_exact(rank.events("iteration"), f"plain_mbs{micro_batch}", EXACT)
    if micro_batch == 1:
        check_final_weights(tmp_path / "hf/model.safetensors")


def check_final_weights(path):
    ours, golden = load_file(path), load_file(TRAIN / "plain_mbs1.final.safetensors")
    assert ours.keys() == golden.keys()
    for name, want in golden.items():
        got = ours[name].astype(np.float64)
        if want.ndim == 1:
            got = got - 1  # the golden norms are zero-centred
        difference = got - want
        assert np.linalg.norm(difference) <= 5e-5 * np.linalg.norm(want) + 1e-6, name
        assert np.abs(difference).max() <= 1e-3, name


def test_micro_batch_means_are_the_same_where_no_token_is_masked(tmp_path, prefix):
    flags = golden_flags(prefix, 2)
    flags.remove("--calculate-per-token-loss")
    for rank in h.run(tmp_path, flags, world=2):
        check_exact(rank.events("iteration"), "plain_mbs2", EXACT)


def test_bf16_gradients(tmp_path, prefix):
    (rank,) = h.run(tmp_path, golden_flags(prefix, 1, "--grad-reduce-in-bf16"))
    check_exact(rank.events("iteration"), "bf16grad_mbs1", EXACT)


@pytest.mark.parametrize("variant,extra", [
    ("delayed_mbs1", ["--fp8-amax-history-len", 16, "--fp8-amax-compute-algo", "max"]),
    ("delayed_mbs2", ["--fp8-amax-history-len", 16, "--fp8-amax-compute-algo", "max"]),
    ("delayed_recent_mbs2", ["--fp8-amax-history-len", 16]),
    ("tensorwise_mbs1", ["--fp8-recipe", "tensorwise"]),
    ("tensorwise_mbs2", ["--fp8-recipe", "tensorwise"]),
])
def test_fp8_stays_within_its_sanity_bounds(tmp_path, prefix, variant, extra):
    flags = golden_flags(prefix, int(variant[-1]), "--fp8-format", "hybrid", *extra)
    (rank,) = h.run(tmp_path, flags)
    golden = json.loads((TRAIN / f"{variant}.json").read_text())["iterations"]
    events = rank.events("iteration")
    for field, floor in {"lm_loss": 5e-4, "grad_norm": 5e-3}.items():
        spread = 0.0
        for event, want in zip(events, golden):
            spread = max(spread, want[f"{field}_spread"])
            target = want[f"{field}_f64"]
            assert abs(event[field] - target) <= max(floor, 3 * spread) * abs(target), (field, event, want)
    ours = np.mean([e["lm_loss"] for e in events])
    theirs = np.mean([w["lm_loss_f64"] for w in golden])
    assert abs(ours - theirs) <= 3e-3 * theirs


def test_hugging_face_round_trip_is_exact(tmp_path, prefix):
    flags = golden_flags(prefix, 1, "--save-hf", tmp_path / "hf")
    flags[flags.index("--train-samples")] = "--train-iters"
    flags[flags.index("--train-iters") + 1] = 0
    for name in ("--lr-warmup-samples", "--lr-decay-samples"):
        at = flags.index(name)
        del flags[at:at + 2]
    h.run(tmp_path, flags)
    ours, golden = load_file(tmp_path / "hf/model.safetensors"), load_file(h.GOLDEN / "llama/hf/model.safetensors")
    assert ours.keys() == golden.keys()
    for name in golden:
        assert np.array_equal(ours[name], golden[name]), name
