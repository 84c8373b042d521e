"""--resume: a run that is killed and resumed again and again writes the same bytes as one that is not."""

import gzip
import json
import pathlib
import random
import shutil
import signal
import subprocess
import time

import pytest
from preprocess_program import GOLDEN, PROGRAM, TINY, leftovers, run


@pytest.fixture(scope="module")
def text():
    with gzip.open(GOLDEN / "megatron/data/corpus.jsonl.gz") as packed:
        return packed.read() + b"\n"


def start(args, stdin=None):
    return subprocess.Popen(
        [PROGRAM, *map(str, args), "--resume", "--save-interval", "0", "--progress", "none"],
        stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def outputs(folder, prefix):
    return {name: (folder / name).read_bytes() for name in leftovers(folder, prefix)}


def position(path):
    return json.loads(path.read_text())["position"] if path.exists() else None


def kill_until_done(args, prefix, rng, stdin=None):
    """Kills each run some time after it has noted a new position. Returns how many went on from one."""
    state = pathlib.Path(f"{prefix}.resume.json")
    resumed = 0
    for _ in range(100):
        before = position(state)
        process = start(args, stdin and open(stdin, "rb"))
        while process.poll() is None and position_or_none(state) in (None, before):
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        out, err = process.communicate()
        if process.returncode == 0:
            assert "(resumed)" in out
            return resumed
        assert process.returncode == -signal.SIGKILL, err
        resumed += before is not None
    raise AssertionError("no progress")


def position_or_none(path):
    try:
        return position(path)
    except (FileNotFoundError, json.JSONDecodeError):  # being replaced
        return None


CASES = {
    "plain": ["--append-eod"],
    "partitions": ["--partitions", "3", "--json-keys", "text", "more"],
    "sequential": ["--partitions", "2", "--keep-sequential-samples", "--workers", "2"],
    "stdin": ["--workers", "1"],
}


@pytest.mark.parametrize("case", CASES)
def test_a_killed_run_goes_on(case, text, tmp_path):
    rng = random.Random(case)
    lines = text.replace(b'{"text"', b'{"more": "m", "text"').splitlines(keepends=True)
    for i in range(3):
        body = b"".join(rng.sample(lines, len(lines))) * 2 + b"{bad\n" * i
        (tmp_path / f"in{i}").write_bytes(gzip.compress(body, 1) if i == 1 else body)
    flags = [*TINY, *CASES[case], "--on-error", "skip"]
    stdin = None
    inputs = [tmp_path / f"in{i}" for i in range(3)]
    if case == "stdin":
        stdin = inputs[0]
        inputs[0] = "-"
    args = ["--input", *inputs, *flags]
    with open(stdin or "/dev/null", "rb") as file:
        done = subprocess.run([PROGRAM, *map(str, args), "--output-prefix", tmp_path / "one"], stdin=file, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    resumed = kill_until_done([*args, "--output-prefix", tmp_path / "two"], tmp_path / "two", rng, stdin)
    assert resumed >= 2
    one = {name.removeprefix("one"): data for name, data in outputs(tmp_path, "one").items()}
    two = {name.removeprefix("two"): data for name, data in outputs(tmp_path, "two").items()}
    assert one == two  # and nothing else is left


@pytest.fixture()
def killed(text, tmp_path):
    """The arguments of a run that was killed half-way."""
    (tmp_path / "in.jsonl").write_bytes(text * 6)
    args = ["--input", tmp_path / "in.jsonl", "--output-prefix", tmp_path / "out", *TINY, "--workers", "1"]
    process = start(args)
    while position_or_none(tmp_path / "out.resume.json") is None:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (tmp_path / "out_text_document.bin").exists() and not (tmp_path / "out_text_document.idx").exists()
    return args


def test_another_run_is_not_resumed(killed, tmp_path):
    for change, message in [
        ([*killed, "--append-eod"], "it had no --append-eod"),
        ([*killed[:4], "--tokenizer-type", "NullTokenizer", "--vocab-size", 10], "it had --tokenizer-model"),
    ]:
        done = run(*change, "--resume")
        assert done.returncode == 65 and "--resume: the interrupted run was another: " + message in done.stderr, done.stderr
    with open(tmp_path / "in.jsonl", "ab") as file:
        file.write(b"{}\n")
    done = run(*killed, "--resume")
    assert done.returncode == 65 and "in.jsonl was changed meanwhile" in done.stderr
    assert (tmp_path / "out.resume.json").exists()  # nothing was lost


def test_damaged_leftovers_are_refused(killed, tmp_path):
    bin_file = tmp_path / "out_text_document.bin.tmp"
    whole = bin_file.read_bytes()
    bin_file.write_bytes(whole[:100])
    done = run(*killed, "--resume")
    assert done.returncode == 65 and "out_text_document.bin.tmp has 100 bytes, but the interrupted run wrote" in done.stderr
    (tmp_path / "out.resume.json").write_text("{")
    done = run(*killed, "--resume")
    assert done.returncode == 65 and "out.resume.json can't be used" in done.stderr
    assert run(*killed).returncode == 0  # without --resume: from the start
    assert leftovers(tmp_path, "out") == ["out_text_document.bin", "out_text_document.idx"]


def test_a_run_that_was_killed_while_it_gave_files_their_names(killed, tmp_path):
    state = json.loads((tmp_path / "out.resume.json").read_text())
    assert run(*killed, "--resume").returncode == 0
    want = outputs(tmp_path, "out")
    for renamed in (["bin", "idx"], ["idx"]):
        for suffix in renamed:
            shutil.move(tmp_path / f"out_text_document.{suffix}", tmp_path / f"out_text_document.{suffix}.tmp")
        (tmp_path / "out.resume.json").write_text(json.dumps({**state, "complete": True}))
        assert run(*killed, "--resume").returncode == 0
        assert outputs(tmp_path, "out") == want


def test_two_runs_do_not_write_the_same_files(text, tmp_path):
    with subprocess.Popen(
        [PROGRAM, "--input", "-", "--output-prefix", str(tmp_path / "out"), *TINY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as first:
        while not leftovers(tmp_path, "out"):
            time.sleep(0.005)
        second = run("--input", "-", "--output-prefix", tmp_path / "out", *TINY, input='{"text": "x"}')
        assert second.returncode == 65 and "is being written by another process" in second.stderr
        first.communicate(b'{"text": "y"}\n')
        assert first.returncode == 0
    assert leftovers(tmp_path, "out") == ["out_text_document.bin", "out_text_document.idx"]
