"""Sample orders, blends and index caches through the real program."""

import json
import resource

import pytest

import train_harness as h


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    return h.corpus(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    return h.corpus(tmp_path_factory.mktemp("other"), documents=30, seed=9)


@pytest.mark.parametrize("world", [1, 2])
def test_streamed_order_resumes_bit_for_bit(tmp_path, prefix, world):
    flags = {"index_order": "streamed", "global_batch_size": 4}
    whole = h.run(tmp_path / "whole", h.tiny_flags(prefix, 90, **flags), world)  # more than one epoch
    save = {"save": tmp_path / "ckpt", "load": tmp_path / "ckpt", **flags}
    first = h.run(tmp_path / "first", h.tiny_flags(prefix, 90, exit_interval=50, **save), world)
    second = h.run(tmp_path / "second", h.tiny_flags(prefix, 90, **save), world)
    assert len(h.losses(first[0])) == 50
    assert h.losses(whole[0]) == h.losses(first[0]) + h.losses(second[0])


def test_another_order_is_refused_on_resume(tmp_path, prefix):
    save = {"save": tmp_path / "ckpt", "load": tmp_path / "ckpt"}
    h.run(tmp_path / "made", h.tiny_flags(prefix, 4, exit_interval=2, index_order="streamed", **save))
    (index,) = (tmp_path / "ckpt").glob("iter_*/index.json")
    assert json.loads(index.read_text())["schedule"]["data order"] == "streamed-1, seed 1234"
    for changes, ours in ({}, "'megatron'"), ({"index_order": "streamed", "seed": 5}, "'streamed-1, seed 5'"):
        (rank,) = h.run(tmp_path / "again", h.tiny_flags(prefix, 4, **changes, **save), expect=64)
        assert f"the order of the samples is {ours}" in rank.err
        assert "was written with 'streamed-1, seed 1234'" in rank.err
    h.run(tmp_path / "fine", h.tiny_flags(prefix, 4, index_order="streamed", **save))


def test_two_billion_samples_start(tmp_path):
    """The samples of the 16-trillion-token recipes on mock data, with a model that fits here."""
    flags = h.tiny_flags(None, None, data_path=None, train_iters=None, train_samples=1_953_125_000, mock_data=True,
                         split="99,1,0", eval_iters=32, eval_interval=100, exit_interval=1)
    (rank,) = h.run(tmp_path / "refused", flags, expect=65)
    assert "GiB in memory" in rank.err and "--index-order streamed" in rank.err
    (rank,) = h.run(tmp_path / "streamed", [*flags, "--index-order", "streamed"])
    assert "1953125000 training samples" in rank.out
    # The largest of all children so far, LibTorch included.
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 1 << 20  # KiB


def test_a_cache_is_shared_and_a_damaged_one_replaced(tmp_path, prefix):
    flags = h.tiny_flags(prefix, 3, data_cache_path=tmp_path / "cache")
    want = h.losses(h.run(tmp_path / "0", h.tiny_flags(prefix, 3), 4)[0])
    assert h.losses(h.run(tmp_path / "1", flags, 4)[0]) == want  # four build at once
    files = sorted(p.name for p in (tmp_path / "cache").iterdir())
    assert len(files) == 4 and all("-GPTDataset-train-" in name for name in files)
    (shuffle,) = (tmp_path / "cache").glob("*-shuffle_index.npy")
    whole = shuffle.read_bytes()
    shuffle.write_bytes(whole[:-1])
    ranks = h.run(tmp_path / "2", flags, 4)
    assert h.losses(ranks[0]) == want
    assert sum(f"{shuffle}, offset 128: the file has" in rank.err for rank in ranks) == 1
    assert shuffle.read_bytes() == whole


def test_lists_in_files_are_lists_in_flags(tmp_path, prefix, other):
    words = ["30", prefix, "70", other]
    want = h.losses(h.run(tmp_path / "0", h.tiny_flags(None, 6, data_path=None) + ["--data-path", *words])[0])
    (tmp_path / "list").write_text("\n".join(words))
    flags = h.tiny_flags(None, 6, data_path=None, data_args_path=tmp_path / "list")
    assert h.losses(h.run(tmp_path / "1", flags)[0]) == want

    own = h.tiny_flags(None, 6, data_path=None, split=None)
    want = h.losses(h.run(tmp_path / "2", own + ["--train-data-path", *words])[0])
    (tmp_path / "json").write_text(json.dumps({"train": words, "valid": None, "test": f"{prefix}"}))
    assert h.losses(h.run(tmp_path / "3", own + ["--per-split-data-args-path", tmp_path / "json"])[0]) == want


def test_plain_reads_give_what_mapping_gives(tmp_path, prefix):
    want = h.losses(h.run(tmp_path / "0", h.tiny_flags(prefix, 5))[0])
    assert h.losses(h.run(tmp_path / "1", h.tiny_flags(prefix, 5, no_mmap_bin_files=True))[0]) == want


@pytest.mark.parametrize("wrong,message", [
    (["--data-path", "a", "--data-args-path", "b"], "--data-path excludes --data-args-path"),
    (["--train-data-path", "a", "--per-split-data-args-path", "b"], "--per-split-data-args-path excludes"),
    (["--data-path", "a", "--valid-data-path", "b"], "--data-path excludes --train-data-path"),
    (["--train-data-path", "a", "--split", "1"], "--split 1: cuts the data of --data-path"),
    (["--data-path", "a", "--reset-attention-mask", "--no-create-attention-mask-in-dataloader"],
     "--reset-attention-mask needs the attention mask"),
    (["--data-path", "a", "--index-order", "streamed", "--data-order", "sequential"], "--index-order streamed says how"),
    (["--data-path", "a", "--index-memory", "8 pigs"], "--index-memory '8 pigs': wants bytes"),
    (["--data-path", "a", "--reset-position-ids"], "--reset-position-ids needs --tokenizer-type"),
])
def test_impossible_combinations_are_named(tmp_path, wrong, message):
    (rank,) = h.run(tmp_path, h.tiny_flags(None, 2, data_path=None, split=None) + wrong, expect=64)
    assert message in rank.err
