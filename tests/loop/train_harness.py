"""Runs the real muster-train: one process a rank, events and output collected."""

import json
import os
import socket
import struct
import subprocess
import time
from pathlib import Path

import numpy as np

BIN = Path(os.environ["MUSTER_BIN"])
SOURCE = Path(os.environ["MUSTER_SOURCE"])
GOLDEN = Path(os.environ["MUSTER_GOLDEN"])
MUSTER_TRAIN = str(BIN / "muster-train")


def write_dataset(prefix, documents):
    """PREFIX.bin and PREFIX.idx in Megatron's format, a sequence a document."""
    lengths = np.array([len(d) for d in documents], dtype="<i4")
    np.concatenate([np.asarray(d, dtype="<i4") for d in documents]).tofile(f"{prefix}.bin")
    offsets = np.concatenate([[0], np.cumsum(lengths[:-1], dtype="<i8") * 4]).astype("<i8")
    with open(f"{prefix}.idx", "wb") as f:
        f.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 4, len(documents), len(documents) + 1))
        f.write(lengths.tobytes() + offsets.tobytes())
        f.write(np.arange(len(documents) + 1, dtype="<i8").tobytes())
    return str(prefix)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Rank:
    """One running process."""

    def __init__(self, folder, rank, argv, env):
        self.rank = rank
        self.events_path = folder / f"events_{rank}.jsonl"
        self.error_path = folder / f"error_{rank}.json"
        self.out_path = folder / f"out_{rank}.txt"
        self.err_path = folder / f"err_{rank}.txt"
        for path in (self.events_path, self.error_path):
            path.unlink(missing_ok=True)
        events = os.open(self.events_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.set_inheritable(events, True)
        env = dict(env, MUSTER_EVENT_FD=str(events), TORCHELASTIC_ERROR_FILE=str(self.error_path))
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.process = subprocess.Popen(argv, stdout=out, stderr=err, env=env, pass_fds=(events,))
        os.close(events)

    def wait(self, timeout):
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"rank {self.rank} did not end in {timeout} s:\n{self.out}\n{self.err}") from None

    @property
    def out(self):
        return self.out_path.read_text()

    @property
    def err(self):
        return self.err_path.read_text()

    @property
    def code(self):
        return self.process.returncode

    def events(self, kind=None):
        lines = self.events_path.read_text().splitlines()
        events = [json.loads(line) for line in lines]
        return [e for e in events if kind is None or e["event"] == kind]

    def error(self):
        return json.loads(self.error_path.read_text())["message"]


def base_env():
    keep = {"PATH", "HOME", "LANG", "TZ", "LD_LIBRARY_PATH"}
    return {k: v for k, v in os.environ.items() if k in keep}


def start(folder, flags, world=1, master="127.0.0.2"):
    """Starts `world` ranks with the same flags; the caller waits."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    ranks = []
    for rank in range(world):
        env = base_env()
        if world > 1:
            env.update(RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(rank), MASTER_ADDR=master,
                       MASTER_PORT=str(port))
        ranks.append(Rank(folder, rank, [MUSTER_TRAIN, *map(str, flags)], env))
    return ranks


def run(folder, flags, world=1, expect=0, timeout=120, master="127.0.0.2"):
    """Runs to the end; every rank must exit with `expect`."""
    ranks = start(folder, flags, world, master)
    deadline = time.monotonic() + timeout
    for rank in ranks:
        rank.wait(max(1, deadline - time.monotonic()))
    for rank in ranks:
        assert rank.code == expect, f"rank {rank.rank} exited with {rank.code}:\n{rank.out[-2000:]}\n{rank.err}"
    return ranks


def wait_for(condition, timeout=60):
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "condition not met in time"
        time.sleep(0.01)


def losses(rank):
    return [e["lm_loss"] for e in rank.events("iteration")]


def corpus(folder, documents=60, vocab=250, seed=0):
    """Text-like documents: a Markov chain, so that there is something to learn."""
    random = np.random.default_rng(seed)
    following = random.integers(0, vocab, size=(vocab, 3))
    result = []
    for _ in range(documents):
        token = int(random.integers(vocab))
        document = []
        for _ in range(int(random.integers(20, 200))):
            token = int(following[token, random.integers(3)])
            document.append(token)
        result.append(document)
    folder.mkdir(parents=True, exist_ok=True)
    return write_dataset(folder / "text", result)


def tiny_flags(prefix, iters, **changes):
    """A model that trains in a blink. Changes: flag_name=value; True = bare flag, None = left out."""
    flags = {
        "num-layers": 2, "hidden-size": 32, "ffn-hidden-size": 64, "num-attention-heads": 4, "seq-length": 32,
        "max-position-embeddings": 32, "vocab-size": 256, "micro-batch-size": 1, "global-batch-size": 4,
        "train-iters": iters, "lr": 0.003, "lr-decay-style": "constant", "data-path": prefix, "split": "90,10,0",
        "eval-iters": 0, "log-interval": 1, "untie-embeddings-and-output-weights": True,
    }
    flags.update({k.replace("_", "-"): v for k, v in changes.items()})
    words = []
    for name, value in flags.items():
        if value is None or value is False:
            continue
        words.append(f"--{name}")
        if value is not True:
            words.append(value)
    return words


FP8_DELAYED = {"fp8_format": "hybrid", "fp8_amax_history_len": 8, "fp8_amax_compute_algo": "max"}

