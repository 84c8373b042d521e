"""N + M steps are N steps, a save, a load and M steps, bit for bit; whatever happens on the way."""

import json
import random
import shutil
import time

import pytest
from safetensors.numpy import load_file

import train_harness as h


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    return h.corpus(tmp_path_factory.mktemp("data"))


CASES = {
    "fp32": ({}, 1),
    "bf16": ({"bf16": True, "grad_reduce_in_bf16": True}, 1),
    "fp8-delayed": (h.FP8_DELAYED, 1),
    "fp8-delayed-dp2": (h.FP8_DELAYED, 2),
    "fp8-tensorwise": ({"fp8_format": "hybrid", "fp8_recipe": "tensorwise"}, 1),
    "fp8-delayed-tp2-pp2": ({"tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 2, "sequence_parallel": True,
                             **h.FP8_DELAYED}, 4),
    "dp2-distributed": ({"use_distributed_optimizer": True, "bf16": True}, 2),
    "dp4": ({"calculate_per_token_loss": True}, 4),
}


def trail(ranks):
    return [(e["iteration"], e["lm_loss"], e["grad_norm"]) for e in ranks[0].events("iteration")]


@pytest.mark.parametrize("case", CASES)
def test_bit_exact(tmp_path, prefix, case):
    changes, world = CASES[case]
    changes = dict(changes, lr_decay_style="cosine", lr_warmup_iters=3, eval_iters=2, eval_interval=4)
    whole = h.run(tmp_path / "whole", h.tiny_flags(prefix, 12, save_hf=tmp_path / "a", **changes), world)
    save = {"save": tmp_path / "ckpt", "load": tmp_path / "ckpt", **changes}
    first = h.run(tmp_path / "first", h.tiny_flags(prefix, 12, exit_interval=5, **save), world)
    second = h.run(tmp_path / "second", h.tiny_flags(prefix, 12, save_hf=tmp_path / "b", **save), world)
    first = trail(first)
    assert [i for i, *_ in first] == [1, 2, 3, 4, 5]
    assert trail(whole) == first + trail(second)
    assert "at iteration 5" in second[0].out
    validation = [e["lm_loss"] for e in whole[0].events("validation")]
    assert [e["lm_loss"] for e in second[0].events("validation")] == validation[1:]
    assert (tmp_path / "a/model.safetensors").read_bytes() == (tmp_path / "b/model.safetensors").read_bytes()


def test_same_seed_same_bits_other_seed_other_bits(tmp_path, prefix):
    one = h.run(tmp_path / "1", h.tiny_flags(prefix, 4), 2)
    two = h.run(tmp_path / "2", h.tiny_flags(prefix, 4), 2)
    other = h.run(tmp_path / "3", h.tiny_flags(prefix, 4, seed=5), 2)
    assert h.losses(one[0]) == h.losses(one[1]) == h.losses(two[0])
    assert h.losses(other[0]) != h.losses(one[0])


def checkpoints(tmp_path, prefix, iters=9, **changes):
    flags = h.tiny_flags(prefix, iters, save=tmp_path / "ckpt", load=tmp_path / "ckpt", save_interval=3, **changes)
    (rank,) = h.run(tmp_path / "made", flags)
    return rank, flags


def test_saves_every_interval_and_at_the_end(tmp_path, prefix):
    rank, _ = checkpoints(tmp_path, prefix, iters=8)
    assert [e["iteration"] for e in rank.events("checkpoint")] == [3, 6, 8]
    assert (tmp_path / "ckpt/latest_checkpointed_iteration.txt").read_text() == "8\n"
    assert sorted(p.name for p in (tmp_path / "ckpt").iterdir()) == [
        "iter_0000003", "iter_0000006", "iter_0000008", "latest_checkpointed_iteration.txt"]


def test_shards_are_safetensors(tmp_path, prefix):
    checkpoints(tmp_path, prefix, **h.FP8_DELAYED)
    tensors = load_file(tmp_path / "ckpt/iter_0000009/shard_00000.safetensors")
    kinds = {name.split(".")[0] for name in tensors}
    assert kinds == {"model", "optimizer", "fp8"}


def test_a_flipped_bit_is_named_and_the_previous_checkpoint_taken(tmp_path, prefix):
    _, flags = checkpoints(tmp_path, prefix)
    shard = tmp_path / "ckpt/iter_0000009/shard_00000.safetensors"
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 4
    shard.write_bytes(data)
    (rank,) = h.run(tmp_path / "again", flags)
    assert "skipped checkpoint iter_0000009: shard_00000.safetensors: checksum differs" in rank.out
    assert [e["iteration"] for e in rank.events("iteration")] == [7, 8, 9]


def test_no_whole_checkpoint_is_an_error(tmp_path, prefix):
    _, flags = checkpoints(tmp_path, prefix)
    for folder in (tmp_path / "ckpt").glob("iter_*"):
        (folder / "index.json").unlink()
    ranks = h.run(tmp_path / "again", flags, world=2, expect=74)
    assert "no whole checkpoint there: iter_0000009: " in ranks[0].err
    assert "rank 0 could not look for checkpoints" in ranks[1].err


def test_an_empty_folder_starts_anew_unless_told_otherwise(tmp_path, prefix):
    (rank,) = h.run(tmp_path / "1", h.tiny_flags(prefix, 2, load=tmp_path / "none"))
    assert "from initial weights at iteration 0" in rank.out
    flags = h.tiny_flags(prefix, 2, load=tmp_path / "none", exit_on_missing_checkpoint=True)
    h.run(tmp_path / "2", flags, expect=74)


def test_another_model_is_refused(tmp_path, prefix):
    checkpoints(tmp_path, prefix)
    flags = h.tiny_flags(prefix, 9, load=tmp_path / "ckpt", hidden_size=64)
    (rank,) = h.run(tmp_path / "again", flags, expect=74)
    assert "has shape [256, 32], this model's is [256, 64]" in rank.err


def test_another_schedule_is_refused_unless_told_otherwise(tmp_path, prefix):
    checkpoints(tmp_path, prefix)
    (rank,) = h.run(tmp_path / "1", h.tiny_flags(prefix, 10, load=tmp_path / "ckpt", lr=0.1), expect=64)
    assert "lr is 0.1, but" in rank.err and "0.003" in rank.err
    flags = h.tiny_flags(prefix, 10, load=tmp_path / "ckpt", lr=0.1, override_opt_param_scheduler=True)
    flags[flags.index("--override-opt-param-scheduler")] = "--override-opt_param-scheduler"
    h.run(tmp_path / "2", flags)


def test_finetune_takes_only_the_weights(tmp_path, prefix):
    made, _ = checkpoints(tmp_path, prefix)
    (rank,) = h.run(tmp_path / "again", h.tiny_flags(prefix, 2, load=tmp_path / "ckpt", finetune=True, lr=0.01))
    events = rank.events("iteration")
    assert [e["iteration"] for e in events] == [1, 2]
    assert events[0]["lm_loss"] < h.losses(made)[0]


@pytest.mark.parametrize("given,decoupled", [
    ({}, ("0.003", "0.0001")),
    ({"decoupled_lr": 0.01}, ("0.01", "0.0001")),
    ({"decoupled_lr": 0.01, "decoupled_min_lr": 0.002}, ("0.01", "0.002")),
])
def test_the_schedule_of_embedding_and_head(tmp_path, prefix, given, decoupled):
    flags = h.tiny_flags(prefix, 2, save=tmp_path / "ckpt", min_lr=0.0001, lr_decay_style="cosine", **given)
    h.run(tmp_path, flags)
    schedule = json.loads((tmp_path / "ckpt/iter_0000002/index.json").read_text())["schedule"]
    assert (schedule["lr"], schedule["min-lr"]) == ("0.003", "0.0001")
    assert (schedule["decoupled-lr"], schedule["decoupled-min-lr"]) == decoupled


def test_checkpoints_without_the_optimizer(tmp_path, prefix):
    flags = {"save": tmp_path / "ckpt", "no_save_optim": True}
    (made,) = h.run(tmp_path / "made", h.tiny_flags(prefix, 4, **flags))
    assert not [n for n in load_file(tmp_path / "ckpt/iter_0000004/shard_00000.safetensors") if n.startswith("optimizer")]
    (rank,) = h.run(tmp_path / "whole", h.tiny_flags(prefix, 6, load=tmp_path / "ckpt"), expect=74)
    assert "exp_avg: not in this checkpoint" in rank.err
    (rank,) = h.run(tmp_path / "again", h.tiny_flags(prefix, 6, load=tmp_path / "ckpt", no_load_optim=True))
    whole = h.losses(h.run(tmp_path / "truth", h.tiny_flags(prefix, 6))[0])
    assert h.losses(rank)[0] == whole[4]  # the weights are there
    assert h.losses(rank)[1] != whole[5]  # the moments are not


def test_the_other_ranks_need_no_shared_folder(tmp_path, prefix):
    flags = h.tiny_flags(prefix, 6, save=tmp_path / "ckpt", save_interval=3)
    whole = h.run(tmp_path / "made", flags, 2)
    shutil.rmtree(tmp_path / "ckpt/iter_0000006")
    flags = h.tiny_flags(prefix, 6, load=tmp_path / "ckpt")
    (tmp_path / "ckpt/latest_checkpointed_iteration.txt").write_text("3\n")
    again = h.run(tmp_path / "again", flags, 2)
    assert h.losses(again[1]) == h.losses(whole[1])[3:]


def test_kill_9_at_any_moment_loses_at_most_one_interval(tmp_path, prefix):
    flags = h.tiny_flags(prefix, 100, save=tmp_path / "ckpt", load=tmp_path / "ckpt", save_interval=1)
    (whole,) = h.run(tmp_path / "whole", h.tiny_flags(prefix, 100))
    truth = h.losses(whole)
    reached = 0
    randoms = random.Random(1)
    for round_ in range(12):
        (rank,) = h.start(tmp_path / f"round{round_}", flags)
        time.sleep(0.15 + 0.25 * randoms.random())
        rank.process.kill()
        rank.process.wait()
        events = rank.events("iteration")
        for event in events:
            assert event["lm_loss"] == truth[event["iteration"] - 1]
        if events:
            assert events[0]["iteration"] >= reached  # what was published is never lost
        saved = [e["iteration"] for e in rank.events("checkpoint")]
        reached = max([reached, *saved])
        if reached >= 60:  # a fast machine: leave something for the last run
            break
    (last,) = h.run(tmp_path / "last", flags)
    assert h.losses(last)[-1] == truth[-1]
    for line in last.out.splitlines():
        assert "skipped checkpoint" not in line or "newer than" in line
