"""Layouts of real processes over Gloo: the same losses as one rank, one checkpoint format, and nobody hangs."""

import signal
import time

import pytest
from safetensors.numpy import load_file

import train_harness as h

# The order of sums differs between layouts, by about 1e-16 each in fp64; see tests/parallel/layouts_test.cc.
TOLERANCE = 1e-9
FP64 = {"params_dtype": "fp64", "num_layers": 4, "global_batch_size": 8, "calculate_per_token_loss": True}

LAYOUTS = {
    "tp2": (2, {"tensor_model_parallel_size": 2}),
    "tp2-sp": (2, {"tensor_model_parallel_size": 2, "sequence_parallel": True}),
    "pp2-uneven": (2, {"pipeline_model_parallel_size": 2, "decoder_last_pipeline_num_layers": 1}),
    "pp2-vp2": (2, {"pipeline_model_parallel_size": 2, "num_virtual_stages_per_pipeline_rank": 2}),
    "cp2": (2, {"context_parallel_size": 2}),
    "cp4": (4, {"context_parallel_size": 4}),
    "cp2-all-gather": (2, {"context_parallel_size": 2, "cp_comm_type": "all_gather"}),
    "cp2-tp2-dp2-distributed": (8, {"context_parallel_size": 2, "tensor_model_parallel_size": 2,
                                    "use_distributed_optimizer": True}),
    "tp2-pp2-dp2": (8, {"tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 2, "sequence_parallel": True}),
}


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    return h.corpus(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def alone(tmp_path_factory, prefix):
    flags = h.tiny_flags(prefix, 5, eval_iters=2, eval_interval=5, split="80,20,0", **FP64)
    return h.run(tmp_path_factory.mktemp("alone"), flags)[0]


def check_equal(ranks, expected):
    for rank in ranks:
        assert h.losses(rank) == pytest.approx(h.losses(expected), rel=TOLERANCE)
        for name, key in [("iteration", "grad_norm"), ("validation", "lm_loss")]:
            assert [e[key] for e in rank.events(name)] == pytest.approx(
                [e[key] for e in expected.events(name)], rel=TOLERANCE)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_losses_are_those_of_one_rank(tmp_path, prefix, alone, layout):
    world, changes = LAYOUTS[layout]
    flags = h.tiny_flags(prefix, 5, eval_iters=2, eval_interval=5, split="80,20,0", **FP64, **changes)
    ranks = h.run(tmp_path, flags, world)
    check_equal(ranks, alone)
    assert ranks[0].events("start")[0]["parameters"] == alone.events("start")[0]["parameters"]
    assert [len(rank.out.split("lm loss: ")) - 1 for rank in ranks] == [0] * (world - 1) + [5]


def test_checkpoints_fit_every_layout(tmp_path, prefix):
    """Saved by eight ranks, continued by one, by two stages, and by eight; the file is the one that a single rank writes."""
    _, many = LAYOUTS["tp2-pp2-dp2"]
    _, stages = LAYOUTS["pp2-vp2"]
    tied = {**FP64, "untie_embeddings_and_output_weights": None, "apply_layernorm_1p": True}
    h.run(tmp_path / "one", h.tiny_flags(prefix, 3, save=tmp_path / "a", **tied))
    h.run(tmp_path / "eight", h.tiny_flags(prefix, 3, save=tmp_path / "b", **tied, **many), 8)
    a, b = (load_file(tmp_path / folder / "iter_0000003/shard_00000.safetensors") for folder in "ab")
    assert a.keys() == b.keys()
    for name in a:
        assert b[name] == pytest.approx(a[name], abs=TOLERANCE), name

    (expected,) = h.run(tmp_path / "1", h.tiny_flags(prefix, 6, load=tmp_path / "a", save_hf=tmp_path / "hf1", **tied))
    for world, layout in [(1, {}), (2, stages), (8, many)]:
        flags = h.tiny_flags(prefix, 6, load=tmp_path / "b", save_hf=tmp_path / f"hf{world}b", **tied, **layout)
        ranks = h.run(tmp_path / f"{world}b", flags, world)
        assert "at iteration 3" in ranks[0].out
        for rank in ranks:
            assert h.losses(rank) == pytest.approx(h.losses(expected), rel=TOLERANCE)
        got, want = (load_file(tmp_path / folder / "model.safetensors") for folder in (f"hf{world}b", "hf1"))
        assert got.keys() == want.keys()
        for name in want:
            assert got[name] == pytest.approx(want[name], abs=TOLERANCE), name


def test_a_hugging_face_folder_starts_every_layout(tmp_path, prefix):
    h.run(tmp_path / "made", h.tiny_flags(prefix, 2, save_hf=tmp_path / "hf", **FP64))
    flags = {**FP64, "load_hf": tmp_path / "hf"}
    (one,) = h.run(tmp_path / "1", h.tiny_flags(prefix, 3, **flags))
    _, layout = LAYOUTS["tp2-pp2-dp2"]
    for rank in h.run(tmp_path / "8", h.tiny_flags(prefix, 3, **flags, **layout), 8):
        assert h.losses(rank) == pytest.approx(h.losses(one), rel=TOLERANCE)


def test_fp8_over_stages_is_the_single_ranks_bit_for_bit(tmp_path, prefix):
    """Each stage scales its own layers, in the order of micro-batches, so a pipeline changes nothing."""
    changes = {"num_layers": 4, "global_batch_size": 8, **h.FP8_DELAYED}
    (one,) = h.run(tmp_path / "1", h.tiny_flags(prefix, 5, save=tmp_path / "a", **changes))
    for name in ("pp2-uneven", "pp2-vp2"):
        world, layout = LAYOUTS[name]
        ranks = h.run(tmp_path / name, h.tiny_flags(prefix, 5, save=tmp_path / name / "b", **changes, **layout), world)
        assert h.losses(ranks[0])[0] == h.losses(one)[0]
        a, b = (load_file(p / "iter_0000005/shard_00000.safetensors") for p in (tmp_path / "a", tmp_path / name / "b"))
        assert a.keys() == b.keys() and any(key.startswith("fp8.") for key in a)


@pytest.mark.parametrize("victim", [0, 3, 7])
def test_kill_a_rank_of_any_group(tmp_path, prefix, victim):
    _, layout = LAYOUTS["tp2-pp2-dp2"]
    ranks = h.start(tmp_path, h.tiny_flags(prefix, 100000, **FP64, **layout), 8)
    h.wait_for(lambda: len(ranks[victim].events_path.read_text().splitlines()) > 2)
    ranks[victim].process.kill()
    killed = time.monotonic()
    for rank in ranks:
        if rank.rank != victim:
            assert rank.wait(30) == 71
            assert rank.error()["extraInfo"]["kind"] == "comm"
    assert time.monotonic() - killed < 30
    ranks[victim].wait(5)


def test_a_stopped_rank_meets_the_timeout(tmp_path, prefix):
    _, layout = LAYOUTS["pp2-uneven"]
    ranks = h.start(tmp_path, h.tiny_flags(prefix, 100000, distributed_timeout_minutes=0.05, **FP64, **layout), 2)
    h.wait_for(lambda: len(ranks[1].events_path.read_text().splitlines()) > 2)
    ranks[1].process.send_signal(signal.SIGSTOP)
    assert ranks[0].wait(30) == 71
    ranks[1].process.kill()
    ranks[1].process.wait()
