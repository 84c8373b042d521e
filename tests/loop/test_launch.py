"""Every way to start it: alone, under torchrun, over IPv6; and what it prints."""

import json
import re
import subprocess

import pytest

import train_harness as h

TORCHRUN = str(h.SOURCE / ".venv/bin/torchrun")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    return h.corpus(tmp_path_factory.mktemp("data"))


ITERATION = re.compile(
    r"^ \[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\] iteration {1,8}(\d+)/ {1,8}(\d+) \| consumed samples: {1,12}(\d+) \|"
    r" elapsed time per iteration \(ms\): (\d+\.\d) \|(?: throughput per GPU \(TFLOP/s/GPU\): (\d+\.\d) \|)?"
    r" learning rate: (\d\.\d{6}E[+-]\d\d) \| global batch size: {1,5}(\d+) \| lm loss: (\d\.\d{6}E[+-]\d\d) \|"
    r" loss scale: 1\.0 \| grad norm: (\d+\.\d{3}) \| number of skipped iterations: {3}0 \|"
    r" number of nan iterations: {3}0 \|$", re.M)


def test_alone(tmp_path, prefix):
    (rank,) = h.run(tmp_path, h.tiny_flags(prefix, 6, log_interval=3, log_throughput=True))
    lines = ITERATION.findall(rank.out)
    assert [int(line[0]) for line in lines] == [1, 3, 6]  # the first, then every interval
    losses = h.losses(rank)
    for line, mean in zip(lines, [losses[0], sum(losses[1:3]) / 2, sum(losses[3:]) / 3]):
        assert float(line[7]) == pytest.approx(mean, rel=1e-6)
    assert [int(line[2]) for line in lines] == [4, 12, 24]


def test_only_the_last_rank_prints_unless_all_are_asked(tmp_path, prefix):
    ranks = h.run(tmp_path / "1", h.tiny_flags(prefix, 3), world=3 + 1)
    assert [len(ITERATION.findall(rank.out)) for rank in ranks] == [0, 0, 0, 3]
    ranks = h.run(tmp_path / "2", h.tiny_flags(prefix, 3, log_all_ranks=True), world=4)
    for rank in ranks:
        lines = re.findall(rf"^ \[rank {rank.rank}\] iteration (\d)/3 \| lm loss \(local\): [\d.]+", rank.out, re.M)
        assert lines == ["1", "2", "3"]


def test_torchrun_gives_the_same_bits(tmp_path, prefix):
    ranks = h.run(tmp_path, h.tiny_flags(prefix, 4), world=2)
    command = [TORCHRUN, "--no-python", "--nnodes=1", "--nproc-per-node=2", f"--master-port={h.free_port()}",
               h.MUSTER_TRAIN, *map(str, h.tiny_flags(prefix, 4))]
    result = subprocess.run(command, env=h.base_env(), capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    lines = [re.sub(r"^ \[.*?\]|elapsed.*?\|", "", line) for line in result.stdout.splitlines() if "lm loss:" in line]
    want = [re.sub(r"^ \[.*?\]|elapsed.*?\|", "", line) for line in ranks[1].out.splitlines() if "lm loss:" in line]
    assert lines == want and len(lines) == 4


def test_torchrun_shows_our_record(tmp_path, prefix):
    command = [TORCHRUN, "--no-python", "--nnodes=1", "--nproc-per-node=2", f"--master-port={h.free_port()}",
               h.MUSTER_TRAIN, *map(str, h.tiny_flags(tmp_path / "missing", 4))]
    result = subprocess.run(command, env=h.base_env(), capture_output=True, text=True, timeout=120)
    assert result.returncode != 0
    assert "exitcode  : 65" in result.stderr and "missing" in result.stderr


def test_ipv6(tmp_path, prefix):
    ranks = h.run(tmp_path, h.tiny_flags(prefix, 2), world=2, master="::1")
    assert len(h.losses(ranks[0])) == 2


def test_start_is_quick(tmp_path, prefix):
    (rank,) = h.run(tmp_path, h.tiny_flags(prefix, 1), timeout=10)
    assert rank.events("start")


def test_validation_lines(tmp_path, prefix):
    flags = h.tiny_flags(prefix, 4, eval_iters=2, eval_interval=2, split="80,10,10")
    ranks = h.run(tmp_path, flags, world=2)
    where = ["iteration 2", "iteration 4", "iteration 4 on validation set", "iteration 4 on test set"]
    text = ranks[1].out
    for place in where:
        match = re.search(rf"^(-+)\n( validation loss at {place} \| lm loss value: \d\.\d{{6}}E[+-]\d\d \| "
                          rf"lm loss PPL: \d\.\d{{6}}E[+-]\d\d \| )\n\1$", text, re.M)
        assert match and len(match[1]) == len(match[2]) + 1, place
    assert [e["where"] for e in ranks[0].events("validation")] == where


@pytest.mark.parametrize("world", [1, 2])
def test_evaluation_sees_what_training_sees(tmp_path, world):
    """At rate 0, on the same documents in the same order, with masked tokens: each evaluation goes on where the one before
    ended, so the losses are those of the iterations."""
    documents = [[1 + (i * 7 + k) % 250 for k in range(length)] for i, length in enumerate([33, 9, 21, 5] * 4)]
    data = h.write_dataset(tmp_path / "documents", documents)
    flags = h.tiny_flags(None, 4, data_path=None, split=None, train_data_path=data, valid_data_path=data, lr=0,
                         data_order="document", eval_iters=1, eval_interval=1, calculate_per_token_loss=True)
    for rank in h.run(tmp_path, flags, world):
        validation = [e["lm_loss"] for e in rank.events("validation")]
        assert len(set(h.losses(rank))) == 4
        assert validation[:4] == pytest.approx(h.losses(rank), rel=1e-6)


def test_evaluation_does_not_disturb_training(tmp_path, prefix):
    (plain,) = h.run(tmp_path / "1", h.tiny_flags(prefix, 6, **h.FP8_DELAYED))
    (evaluated,) = h.run(tmp_path / "2", h.tiny_flags(prefix, 6, eval_iters=3, eval_interval=1, **h.FP8_DELAYED))
    assert h.losses(plain) == h.losses(evaluated)


def test_micro_batch_means_with_masked_tokens(tmp_path):
    """Documents of unequal lengths: padding does not count. One rank with two micro-batches and two ranks with one each
    reach the same means in different ways; the mean over all tokens is something else."""
    documents = [[1 + (i * 7 + k) % 250 for k in range(length)] for i, length in enumerate([33, 9, 21, 5] * 6)]
    data = h.write_dataset(tmp_path / "documents", documents)
    changes = {"data_order": "document", "split": "100,0,0", "global_batch_size": 2}
    (one,) = h.run(tmp_path / "1", h.tiny_flags(data, 6, **changes))
    two = h.run(tmp_path / "2", h.tiny_flags(data, 6, **changes), world=2)
    (tokens,) = h.run(tmp_path / "3", h.tiny_flags(data, 6, calculate_per_token_loss=True, **changes))
    norms = [[e["grad_norm"] for e in rank.events("iteration")] for rank in (one, two[0], tokens)]
    assert norms[0] == pytest.approx(norms[1], rel=1e-5)
    assert norms[0][0] != pytest.approx(norms[2][0], rel=1e-2)
    assert [e["tokens"] for e in one.events("iteration")] == [40, 24] * 3


def test_the_tokenizers_padding_does_not_count(tmp_path):
    """Megatron's byte tokenizer pads with 1, which a text can hold: such a label does not count, wherever it stands."""
    data = h.write_dataset(tmp_path / "documents", [[2, 1, 3, 4, 1, 1, 5] + [6] * 26] * 12)
    changes = {"data_order": "document", "split": "100,0,0", "global_batch_size": 2}
    (plain,) = h.run(tmp_path / "1", h.tiny_flags(data, 3, **changes))
    (padded,) = h.run(tmp_path / "2", h.tiny_flags(data, 3, tokenizer_type="ByteLevelTokenizer", vocab_size=None, **changes))
    assert [e["tokens"] for e in plain.events("iteration")] == [64] * 3
    assert [e["tokens"] for e in padded.events("iteration")] == [58] * 3


def test_baselines(tmp_path, prefix):
    flags = h.tiny_flags(prefix, 60, report_baselines=True, eval_iters=4, eval_interval=1000, split="90,10,0",
                         lr=0.01)
    ranks = h.run(tmp_path, flags, world=2)
    assert "ln(V) 5.5452 with V = 256" in ranks[1].out
    (event,) = ranks[1].events("baselines")
    assert abs(event["first_loss"] / 5.5452 - 1) < 0.05
    assert 4 < event["unigram_entropy"] < 5.6
    assert ("| below" in ranks[1].out) == (event["held_out_loss"] < event["unigram_entropy"])


def test_mock_data_and_samples(tmp_path):
    flags = h.tiny_flags(None, None, mock_data=True, train_samples=14, data_path=None, train_iters=None)
    (rank,) = h.run(tmp_path, [str(f) for f in flags])
    assert len(h.losses(rank)) == 3  # 14 samples are three batches of 4


def test_help_version_and_config(prefix):
    def out(*words):
        result = subprocess.run([h.MUSTER_TRAIN, *map(str, words)], capture_output=True, text=True, env=h.base_env())
        assert result.returncode == 0, result.stderr
        return result.stdout

    assert re.fullmatch(r"muster-train \d+\.\d+\.\d+\n", out("--version"))
    assert "--tensor-model-parallel-size" in out("--help")
    text = out("--print-config", *h.tiny_flags(prefix, 5), "--swiglu")
    assert re.search(r"^  lr +0.003 +command line$", text, re.M)
    assert re.search(r"^  kv-channels +8 +derived$", text, re.M)
    assert "--swiglu: no effect: always so here" in text


def test_the_vocabulary_comes_from_the_tokenizers_own_flags(tmp_path, prefix):
    bytes_ = [*range(33, 127), *range(161, 173), *range(174, 256)]
    names = [chr(b) for b in bytes_] + [chr(256 + i) for i in range(256 - len(bytes_))] + ["<|endoftext|>"]
    (tmp_path / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(names)}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    flags = h.tiny_flags(prefix, 2, vocab_size=None, tokenizer_type="GPT2BPETokenizer",
                         vocab_file=tmp_path / "vocab.json", merge_file=tmp_path / "merges.txt")
    command = [h.MUSTER_TRAIN, "--print-config", *map(str, flags)]
    result = subprocess.run(command, capture_output=True, text=True, env=h.base_env())
    assert re.search(r"^  vocab-size +257 +tokenizer$", result.stdout, re.M), result.stderr


def test_a_rank_of_mpirun_does_not_train_alone(tmp_path, prefix):
    env = dict(h.base_env(), OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2")
    result = subprocess.run([h.MUSTER_TRAIN, *map(str, h.tiny_flags(prefix, 2))], env=env, capture_output=True, text=True)
    assert result.returncode == 64
    assert "OMPI_COMM_WORLD_SIZE=2 needs MASTER_ADDR and MASTER_PORT" in result.stderr


def test_tied_embedding_and_rope_scaling_train(tmp_path, prefix):
    flags = h.tiny_flags(prefix, 20, untie_embeddings_and_output_weights=None, use_rope_scaling=True,
                         apply_layernorm_1p=True, group_query_attention=True, num_query_groups=2, lr=0.01)
    (rank,) = h.run(tmp_path, flags)
    losses = h.losses(rank)
    assert losses[-1] < losses[0] - 0.2
