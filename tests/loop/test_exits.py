"""How a rank ends: codes, records, and that nobody hangs."""

import signal
import socket
import subprocess
import time

import numpy as np
import pytest

import train_harness as h


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    return h.corpus(tmp_path_factory.mktemp("data"))


def check_record(rank, code, kind):
    record = rank.error()
    assert record["errorCode"] == code
    assert record["extraInfo"]["kind"] == kind
    assert int(record["extraInfo"]["timestamp"]) > 1_600_000_000
    (event,) = rank.events("error")
    assert event["code"] == code and event["kind"] == kind
    return record["message"]


def test_config(tmp_path, prefix):
    (rank,) = h.run(tmp_path, h.tiny_flags(prefix, 3) + ["--micro-batchsize", 1], expect=64)
    assert "did you mean '--micro-batch-size'?" in check_record(rank, 64, "config")
    assert rank.out == ""
    h.run(tmp_path, h.tiny_flags(prefix, 3, global_batch_size=6), world=4, expect=64)


def test_missing_data(tmp_path, prefix):
    (rank,) = h.run(tmp_path, h.tiny_flags(tmp_path / "no_such", 3), expect=65)
    assert "no_such" in check_record(rank, 65, "data")


def test_a_token_beyond_the_vocabulary(tmp_path):
    bad = h.write_dataset(tmp_path / "bad", [np.full(64, 7), np.full(64, 999)])
    (rank,) = h.run(tmp_path, h.tiny_flags(bad, 3, split="100,0,0"), expect=65)
    assert "999" in check_record(rank, 65, "data")


def test_nan(tmp_path, prefix):
    ranks = h.run(tmp_path, h.tiny_flags(prefix, 8, lr=1e30), world=2, expect=72)
    for rank in ranks:
        assert "iteration " in check_record(rank, 72, "nan")


def test_nan_may_go_on_when_told_so(tmp_path, prefix):
    (rank,) = h.run(tmp_path, h.tiny_flags(prefix, 8, lr=1e30, no_check_for_nan_in_loss_and_grad=True))
    assert len(rank.events("iteration")) == 8


def test_a_folder_that_cant_be_written(tmp_path, prefix):
    (tmp_path / "file").write_text("x")
    ranks = h.run(tmp_path, h.tiny_flags(prefix, 2, save=tmp_path / "file"), world=2, expect=74)
    assert str(tmp_path / "file") in check_record(ranks[0], 74, "checkpoint")
    assert "rank 0 could not save the checkpoint" in check_record(ranks[1], 74, "checkpoint")


@pytest.mark.parametrize("victim", [0, 2])
def test_kill_a_peer(tmp_path, prefix, victim):
    ranks = h.start(tmp_path, h.tiny_flags(prefix, 100000), world=4)
    h.wait_for(lambda: len(ranks[victim].events_path.read_text().splitlines()) > 5)
    ranks[victim].process.kill()
    killed = time.monotonic()
    for rank in ranks:
        if rank.rank != victim:
            assert rank.wait(10) == 71
            assert "a peer has ended" in check_record(rank, 71, "comm")
    assert time.monotonic() - killed < 5
    ranks[victim].wait(5)


def test_data_that_only_one_rank_misses(tmp_path, prefix):
    port = str(h.free_port())
    ranks = []
    for rank, data in enumerate([prefix, prefix, tmp_path / "missing"]):
        env = dict(h.base_env(), RANK=str(rank), WORLD_SIZE="3", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
        flags = h.tiny_flags(data, 100000, global_batch_size=3)
        ranks.append(h.Rank(tmp_path, rank, [h.MUSTER_TRAIN, *map(str, flags)], env))
    assert [rank.wait(15) for rank in ranks] == [71, 71, 65]


def test_a_port_that_is_taken(tmp_path, prefix):
    with socket.socket() as holder:
        holder.bind(("", 0))
        holder.listen()
        env = dict(h.base_env(), RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                   MASTER_PORT=str(holder.getsockname()[1]))
        rank = h.Rank(tmp_path, 0, [h.MUSTER_TRAIN, *map(str, h.tiny_flags(prefix, 3))], env)
        assert rank.wait(15) == 71
    assert f"port {env['MASTER_PORT']} of 127.0.0.1" in check_record(rank, 71, "comm")


def test_a_stopped_peer_meets_the_timeout(tmp_path, prefix):
    flags = h.tiny_flags(prefix, 100000, distributed_timeout_minutes=0.05)
    ranks = h.start(tmp_path, flags, world=2)
    h.wait_for(lambda: len(ranks[1].events_path.read_text().splitlines()) > 5)
    ranks[1].process.send_signal(signal.SIGSTOP)
    assert ranks[0].wait(20) == 71
    ranks[1].process.kill()
    ranks[1].process.wait()


def test_a_rank_that_never_comes(tmp_path, prefix):
    port = h.free_port()
    env = dict(h.base_env(), RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    flags = h.tiny_flags(prefix, 3, distributed_timeout_minutes=0.03)
    rank = h.Rank(tmp_path, 0, [h.MUSTER_TRAIN, *map(str, flags)], env)
    assert rank.wait(20) == 71


def test_sigterm_saves_on_all_ranks_alike(tmp_path, prefix):
    flags = h.tiny_flags(prefix, 100000, exit_signal_handler=True, save=tmp_path / "ckpt", global_batch_size=3)
    ranks = h.start(tmp_path, flags, world=3)
    h.wait_for(lambda: len(ranks[1].events_path.read_text().splitlines()) > 5)
    ranks[1].process.send_signal(signal.SIGTERM)  # one is enough: the others agree
    for rank in ranks:
        assert rank.wait(20) == 75
    (left,) = {e["iteration"] for rank in ranks for e in rank.events("exit")}
    assert (tmp_path / "ckpt/latest_checkpointed_iteration.txt").read_text() == f"{left}\n"
    assert not ranks[0].error_path.exists()


def test_sigterm_without_a_place_to_save(tmp_path, prefix):
    (rank,) = h.start(tmp_path, h.tiny_flags(prefix, 100000, exit_signal_handler=True))
    h.wait_for(lambda: len(rank.events_path.read_text().splitlines()) > 5)
    rank.process.send_signal(signal.SIGTERM)
    assert rank.wait(20) == 143


def test_sigterm_without_the_handler_ends_at_once(tmp_path, prefix):
    (rank,) = h.start(tmp_path, h.tiny_flags(prefix, 100000))
    h.wait_for(lambda: len(rank.events_path.read_text().splitlines()) > 5)
    rank.process.send_signal(signal.SIGTERM)
    assert rank.wait(5) == -signal.SIGTERM


def test_exit_interval_and_duration(tmp_path, prefix):
    (rank,) = h.run(tmp_path / "1", h.tiny_flags(prefix, 100, exit_interval=7))
    assert rank.events("exit")[0]["iteration"] == 7
    flags = h.tiny_flags(prefix, 100000, exit_duration_in_mins=0.02, save=tmp_path / "ckpt")
    ranks = h.run(tmp_path / "2", flags, world=2)
    (left,) = {e["iteration"] for rank in ranks for e in rank.events("exit")}
    assert (tmp_path / "ckpt/latest_checkpointed_iteration.txt").read_text() == f"{left}\n"


def test_a_closed_output_does_not_stop_training(tmp_path, prefix):
    words = [h.MUSTER_TRAIN, *map(str, h.tiny_flags(prefix, 50, save_hf=tmp_path / "hf"))]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, env=h.base_env())
    process.stdout.close()
    assert process.wait(60) == 0
    assert (tmp_path / "hf/model.safetensors").exists()


def test_bad_environment(tmp_path, prefix):
    env = dict(h.base_env(), RANK="5", WORLD_SIZE="2")
    result = subprocess.run([h.MUSTER_TRAIN], env=env, capture_output=True, text=True)
    assert result.returncode == 64 and "RANK=5 must be below WORLD_SIZE=2" in result.stderr
