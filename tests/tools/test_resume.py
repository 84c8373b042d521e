"""--resume: a run that is killed and resumed again and again writes the same bytes as one that is not."""

import gzip
import json
import os
import pathlib
import random
import resource
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


def start(args, stdin=None, max_file_size=None):
    """`max_file_size`: the kernel kills the process when it writes a file beyond that."""

    def limit():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_size, max_file_size))

    return subprocess.Popen(
        [PROGRAM, *map(str, args), "--resume", "--save-interval", "0", "--progress", "none"],
        stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=limit if max_file_size else None,
    )  # fmt: skip


def outputs(folder, prefix):
    return {name: (folder / name).read_bytes() for name in leftovers(folder, prefix)}


def position(path):
    return json.loads(path.read_text())["position"] if path.exists() else None


def kill_at_sizes(args, prefix, sizes, stdin=None):
    """A run that dies when a file has the first size, one that goes on until the second ..."""
    state = pathlib.Path(f"{prefix}.resume.json")
    seen = [None]
    for size in sizes:
        process = start(args, stdin and open(stdin, "rb"), size)
        _, err = process.communicate(timeout=60)
        assert process.returncode == -signal.SIGXFSZ, err
        seen.append(position(state))
        assert seen[-1] not in seen[:-1]  # it came further


def kill_until_done(args, prefix, rng, stdin=None):
    """Kills each run some time after it has noted a new position."""
    state = pathlib.Path(f"{prefix}.resume.json")
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
            return
        assert process.returncode == -signal.SIGKILL, err
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
    args += ["--output-prefix", tmp_path / "two"]
    part = tmp_path / f"one_{'0_' if '--partitions' in flags else ''}text_document.bin"
    kill_at_sizes(args, tmp_path / "two", [part.stat().st_size * tenths // 10 for tenths in (4, 7)], stdin)
    kill_until_done(args, tmp_path / "two", rng, stdin)
    one = {name.removeprefix("one"): data for name, data in outputs(tmp_path, "one").items()}
    two = {name.removeprefix("two"): data for name, data in outputs(tmp_path, "two").items()}
    assert one == two  # and nothing else is left


@pytest.fixture()
def killed(text, tmp_path):
    """The arguments of a run that was killed half-way."""
    (tmp_path / "in.jsonl").write_bytes(text * 6)
    args = ["--input", tmp_path / "in.jsonl", "--output-prefix", tmp_path / "out", *TINY, "--workers", "1"]
    process = start(args, max_file_size=len(text) * 6 // 4)  # about half of its .bin
    _, err = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGXFSZ, err
    assert position(tmp_path / "out.resume.json") is not None
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
    note = note_of_complete_run(killed, tmp_path)
    want = outputs(tmp_path, "out")
    for renamed in (["bin", "idx"], ["idx"]):
        for suffix in renamed:
            shutil.move(tmp_path / f"out_text_document.{suffix}", tmp_path / f"out_text_document.{suffix}.tmp")
        (tmp_path / "out.resume.json").write_text(note)
        (tmp_path / "out.skipped.jsonl.tmp").touch()
        (tmp_path / "out.skipped.jsonl").write_text("of an earlier run\n")
        assert run(*killed, "--resume").returncode == 0
        assert outputs(tmp_path, "out") == want  # and no list of skipped lines


def note_of_complete_run(args, folder):
    """Ends the run of `args`, and gives the note that it had when only names were missing."""
    obstacle = folder / "out_text_document.bin"
    obstacle.mkdir()
    done = run(*args, "--resume")
    assert done.returncode == 65 and "rename to" in done.stderr
    note = (folder / "out.resume.json").read_text()
    assert json.loads(note)["complete"]
    obstacle.rmdir()
    assert run(*args, "--resume").returncode == 0
    return note


def test_a_complete_run_of_which_files_are_gone_is_not_published(killed, tmp_path):
    note = note_of_complete_run(killed, tmp_path)
    names = ["out_text_document.bin", "out_text_document.idx"]
    files = outputs(tmp_path, "out")
    for name, data, message in [
        (names[0], None, "out_text_document.bin, which the interrupted run wrote, is gone"),
        (names[0], files[names[0]][:-1], "but the interrupted run wrote"),
        (names[1], None, "out_text_document.idx, which the interrupted run wrote, is gone"),
        (names[1], files[names[1]] + b"x", "but the interrupted run wrote"),
        (names[0] + ".tmp", files[names[0]], "out_text_document.idx.tmp, which the interrupted run wrote, is gone"),
    ]:
        for old in outputs(tmp_path, "out"):
            (tmp_path / old).unlink()
        state = {**files, "out.resume.json": note.encode(), name: data}
        if name.endswith(".tmp"):
            del state[names[0]]  # an .idx beside an unnamed .bin
        state = {name: data for name, data in state.items() if data is not None}
        for file, content in state.items():
            (tmp_path / file).write_bytes(content)
        done = run(*killed, "--resume")
        assert done.returncode == 65 and message in done.stderr and "without --resume" in done.stderr, (name, done.stderr)
        assert outputs(tmp_path, "out") == state  # nothing was touched


def test_a_complete_run_of_partitions_keeps_all_its_files_for_resume(text, tmp_path):
    (tmp_path / "in.jsonl").write_bytes(text + b"{\n")
    args = ["--input", tmp_path / "in.jsonl", "--output-prefix", tmp_path / "out", *TINY, "--partitions", 2, "--on-error", "skip"]
    assert run(*args).returncode == 0
    want = outputs(tmp_path, "out")
    for name in want:
        (tmp_path / name).unlink()
    (tmp_path / "out_text_document.bin").mkdir()  # the last to get its name
    assert run(*args).returncode == 65
    (tmp_path / "out_text_document.bin").rmdir()
    done = run(*args, "--resume")
    assert done.returncode == 0, done.stderr
    assert outputs(tmp_path, "out") == want


@pytest.mark.parametrize("flags", [[], ["--resume"]])
def test_two_runs_do_not_write_the_same_files(flags, text, tmp_path):
    args = ["--input", "-", "--output-prefix", tmp_path / "out", *TINY, "--workers", "2"]
    note = tmp_path / "out.resume.json"
    first = start(args, subprocess.PIPE)
    try:
        first.stdin.write((text * 4).decode())  # more than a chunk: so it comes to a note
        first.stdin.flush()
        while first.poll() is None and position_or_none(note) is None:
            time.sleep(0.005)
        assert first.poll() is None, first.stderr.read()
        second = run(*args, *flags, input='{"text": "x"}')
        assert second.returncode == 65 and "is being written by another process" in second.stderr
        assert note.exists()  # still the first run's
        _, err = first.communicate('{"text": "y"}\n', timeout=60)
        assert first.returncode == 0, err
    finally:
        first.kill()
    assert leftovers(tmp_path, "out") == ["out_text_document.bin", "out_text_document.idx"]


def test_names_that_are_not_utf8(text, tmp_path):
    folder = os.fsencode(tmp_path)
    source, prefix = folder + b"/caf\xe9.jsonl", folder + b"/o_\xe9"
    with open(source, "wb") as file:
        file.write(text * 4 + b"{\n")
    args = ["--input", source, "--output-prefix", prefix, *TINY, "--on-error", "skip"]
    command = [os.fsencode(word) for word in [PROGRAM, *args, "--resume", "--save-interval", "0"]]
    with subprocess.Popen(command, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (len(text) * 4 // 4,) * 2)) as killed:
        assert killed.wait(60) == -signal.SIGXFSZ
    note = json.loads(pathlib.Path(os.fsdecode(prefix + b".resume.json")).read_bytes())
    assert note["flags"]["--input"] == [f"{tmp_path}/caf\\xe9.jsonl"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0 and b"(resumed)" in done.stdout, done.stderr
    skipped = json.loads(pathlib.Path(os.fsdecode(prefix + b".skipped.jsonl")).read_bytes())
    assert skipped["file"] == f"{tmp_path}/caf\\xe9.jsonl"
    data_set = prefix + b"_text_document"
    for tool in ["inspect", "verify"]:
        listed = json.loads(subprocess.run([PROGRAM, tool, data_set, "--json"], capture_output=True, check=True).stdout)
        assert listed[0]["prefix"] == f"{tmp_path}/o_\\xe9_text_document", tool
    broken = subprocess.run([PROGRAM, "verify", folder + b"/\xff", "--json"], capture_output=True, check=False)
    assert broken.returncode == 65 and "\\xff" in json.loads(broken.stdout)[0]["problems"][0]
    subprocess.run([PROGRAM, "stats", data_set, "--svg", folder + b"/\xe9.svg"], capture_output=True, check=True)
    assert "o_\\xe9" in pathlib.Path(os.fsdecode(folder + b"/\xe9.svg")).read_bytes().decode()
