"""What ranks write, from their write() to the people who read it: quotas, clocks, viewers, filters."""

import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from conftest import MUSTER, PYTHON, new_cluster, wait_until

# Numbered lines of 64 bytes; the hash of all of them goes to a file.
WRITER = """
import hashlib, os, sys
count, path = int(sys.argv[1]), sys.argv[2] + "." + os.environ["RANK"]
block, sha = [], hashlib.sha256()
for i in range(count):
    block.append(b"%-62d|\\n" % i)
    if len(block) == 1024 or i == count - 1:
        data = b"".join(block); block = []
        sha.update(data)
        while data: data = data[os.write(1, data):]
open(path, "w").write(sha.hexdigest())
"""
MARKER = re.compile(rb"\[muster: (\d+) bytes of this output were lost here: [^\n]*\]\n")


def script(cluster, text, name="rank.py"):
    path = cluster.work / name
    path.write_text(text)
    return [PYTHON, path]


def sha(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def resident_mib(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 2**20


class Paused:
    """The controller takes nothing."""

    def __init__(self, cluster):
        self.pid = cluster.controller_pid()

    def __enter__(self):
        os.kill(self.pid, signal.SIGSTOP)

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGCONT)


def node_log(cluster, rank):
    return next(cluster.state.glob(f"**/jobs/*/*/attempt_0/{rank}/stdout.log"), None)


def wait_for_go(cluster, words):
    """The words of a rank that begins when told to, and what tells it."""
    go = cluster.work / "go"
    return ["sh", "-c", 'while [ ! -e "$0" ]; do sleep 0.05; done; exec "$@"', str(go), *map(str, words)], go


def test_a_full_quota_drops_the_oldest_and_counts_it(cluster):
    count, done = 100_000, cluster.work / "done"
    words, go = wait_for_go(cluster, [*script(cluster, WRITER), count, done])
    child = cluster.submit("--log-quota", "256KiB", "--log-policy", "drop-oldest-with-marker", "--nnodes", 1, "--", *words,
                           slots=1)
    cluster.wait_state("running")
    with Paused(cluster):
        go.touch()
        wait_until(lambda: (cluster.work / "done.0").exists(), 60, "the rank goes on although nobody takes its output")
        held = node_log(cluster, 0)
        assert held.stat().st_size == count * 64
        assert held.stat().st_blocks * 512 <= 2 * 256 * 1024
    code, job, live = cluster.finish(child)
    assert code == 0
    log = cluster.log_file(job, 0).read_bytes()
    parts = MARKER.split(log)
    lost = sum(map(int, parts[1::2]))
    kept = b"".join(parts[::2])
    # A marker begins on a line of its own: each may have brought a newline that the rank did not write.
    whole = [int(m) for m in re.findall(rb"^(\d+) +\|$", kept, re.M)]
    assert whole == sorted(set(whole)) and whole[-1] == count - 1
    assert lost > 4_000_000
    assert 0 <= len(kept) + lost - count * 64 <= len(parts) // 2
    wait_until(lambda: cluster.json("ps", "last")["ranks"][0].get("lost_bytes") == lost, 10, "ps counts the lost bytes")
    assert "markers" in cluster.json("ps", "last")["ranks"][0]["lost_reason"]
    out, _ = cluster.muster("logs", "last", "--grep", "were lost here")
    assert f"{lost} bytes" in out or out.count("bytes of this output") == len(parts) // 2
    assert str(lost) in cluster.muster("ps", "last")[0]
    events = (pathlib.Path(job["output_dir"]) / "events.jsonl").read_text()
    assert "log quota was full" in events


def test_a_full_quota_makes_the_rank_wait_and_loses_nothing(cluster):
    count, done = 60_000, cluster.work / "done"
    words, go = wait_for_go(cluster, [*script(cluster, WRITER), count, done])
    child = cluster.submit("--log-quota", "256KiB", "--nnodes", 1, "--", *words, slots=1)
    cluster.wait_state("running")
    with Paused(cluster):
        go.touch()
        held = wait_until(lambda: (p := node_log(cluster, 0)) and p.stat().st_size > 128 * 1024 and p, 20, "the quota fills")
        time.sleep(1)
        assert held.stat().st_size <= 5 * 1024 * 1024  # what was on its way, and the quota
        assert not (cluster.work / "done.0").exists()
    code, job, _ = cluster.finish(child)
    assert code == 0
    assert sha(cluster.log_file(job, 0)) == (cluster.work / "done.0").read_text()
    assert "lost_bytes" not in cluster.json("ps", "last")["ranks"][0]


TURNS = """
import os, sys, time
rank, folder = int(os.environ["RANK"]), sys.argv[1]
for turn in range(12):
    if turn % 2 == rank:
        while turn and not os.path.exists(f"{folder}/turn.{turn - 1}"): time.sleep(0.005)
        time.sleep(0.15)
        print("turn", turn, flush=True)
        time.sleep(0.01)
        open(f"{folder}/turn.{turn}", "w").close()
"""


def test_lines_of_nodes_with_skewed_clocks_are_in_order(cluster):
    wrap = cluster.work / "wrap.sh"
    wrap.write_text('#!/bin/sh\nhost=$1; shift\n[ "$host" = 127.0.0.3 ] && export MUSTER_CLOCK_SKEW_NS=-1400000000\nexec "$@"\n')
    wrap.chmod(0o755)
    hosts = cluster.hostfile(slots=1)
    words = [*script(cluster, TURNS), cluster.work]
    child = cluster.popen("submit", "--hostfile", hosts, "--transport", f"command:{wrap} {{host}}", "--json", "--", *words)
    code, job, live = cluster.finish(child)
    assert code == 0, live
    lines = cluster.lines("last")
    assert [line["text"] for line in lines] == [f"turn {k}" for k in range(12)]
    times = [line["time_ns"] for line in lines]
    assert times == sorted(times)
    assert times[-1] - times[0] < 30e9 and abs(times[-1] - job["ended_ns"]) < 30e9
    # The clocks do differ: otherwise nothing was shown above.
    checked = cluster.json("check", "--hostfile", hosts, "--transport", f"command:{wrap} {{host}}")
    offsets = {n["host"]: n["clock_offset_ms"] for n in checked["nodes"]}
    assert offsets["127.0.0.3"] < -1300 and offsets["127.0.0.2"] > -100, offsets
    shown, _ = cluster.muster("logs", "last", "--times")
    shown = [re.match(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}) \[([01])\]  ?turn (\d+)$", s) for s in shown.splitlines()]
    assert [int(m[3]) for m in shown] == list(range(12))
    assert [m[1] for m in shown] == sorted(m[1] for m in shown)
    half = times[6] - 1_000_000
    since, _ = cluster.muster("logs", "last", "--since", f"@{half / 1e9:.6f}")
    assert re.findall(r"turn (\d+)", since) == [str(k) for k in range(6, 12)]


FILTERS = """
import os, sys
rank = os.environ["RANK"]
print("rank", rank, "loss", 9.1)
print("noise")
if rank == "2": print("odd one out", file=sys.stderr)
"""


def test_filters_and_diff(cluster):
    code, _, _ = cluster.run("--tp", 2, "--", *script(cluster, FILTERS))
    assert code == 0
    show = lambda *args: cluster.muster("logs", "last", *args)[0]
    assert show("--tp", "1", "--grep", "^rank").splitlines() == ["[1]  rank 1 loss 9.1", "[3]  rank 3 loss 9.1"] or \
        sorted(re.findall(r"rank (\d)", show("--tp", "1", "--grep", "^rank"))) == ["1", "3"]
    assert sorted(re.findall(r"rank (\d)", show("--dp", "1", "--tp", "0"))) == ["2"]
    _, err = cluster.muster("logs", "last", "--pp", "3", code=2)
    assert "pp 3: the job has pp 0 only" in err
    _, err = cluster.muster("logs", "last", "--grep", "a(", code=2)
    assert "grep" in err and "at character" in err
    _, err = cluster.muster("logs", "last", "--since", "yesterday", code=2)
    assert "--since" in err and "10m" in err
    _, err = cluster.muster("logs", "last", "--diff", "-f", code=2)
    assert "--diff" in err
    assert "same 2 lines" in show("--diff") and "odd one out" in show("--diff")
    groups = json.loads(show("--diff", "--json"))["groups"]
    assert [g["ranks"] for g in groups] == [[0, 1, 3], [2]]
    assert groups[1]["odd"] == [{"stream": "stderr", "more": 1, "text": "odd one out"}]
    assert "rank 0" in show("--attempt", "all", "--rank", "0")
    _, err = cluster.muster("logs", "last", "--attempt", "1", code=2)
    assert "attempts 0 to 0" in err


VIEWED = """
import os, sys, time
count, path = int(sys.argv[1]), sys.argv[2]
go = path + ".go"
print("ready", flush=True)
while not os.path.exists(go): time.sleep(0.02)
rank = os.environ["RANK"].encode()
if rank == b"0":
    os.write(1, b"long ")
    line = b"x" * 10_000_000 + b"\\n"
    while line: line = line[os.write(1, line):]
for i in range(count):
    os.write(1, b"rank %s line %d %s\\n" % (rank, i, b"." * 60))
open(path + "." + rank.decode(), "w").write(str(time.time()))
"""


def test_viewers_harm_nobody(cluster):
    """A stalled viewer, twenty others, and a line of 10 MB."""
    count, path = 20_000, cluster.work / "viewed"
    cluster.muster("submit", "--hostfile", cluster.hostfile(1), "--detach", "--", *script(cluster, VIEWED), count, path)
    cluster.wait_state("running")
    cluster.wait_lines(2, "ready")
    controller = cluster.controller_pid()
    before = resident_mib(controller)
    stalled = cluster.popen("logs", "-f", "last")
    long_line = cluster.popen("logs", "-f", "last", "--rank", "0", "--stream", "out", "--raw",
                              stdout=open(cluster.work / "raw", "wb"))
    shown = [open(cluster.work / f"shown.{k}", "wb") for k in range(20)]
    viewers = [cluster.popen("logs", "-f", "last", "--grep", "line", stdout=out) for out in shown]
    (cluster.work / "viewed.go").touch()
    peak = stalled_peak = 0
    while cluster.job()["state"] == "running":
        peak = max(peak, resident_mib(controller))
        stalled_peak = max(stalled_peak, resident_mib(stalled.pid))
        time.sleep(0.05)
    job = cluster.job()
    assert job["state"] == "succeeded"
    for viewer in [*viewers, long_line]:
        assert viewer.wait(60) == 0
    peak = max(peak, resident_mib(controller))
    assert stalled.poll() is None, "it waits for its reader"
    stalled_peak = max(stalled_peak, resident_mib(stalled.pid))
    print(f"controller {before:.0f} -> {peak:.0f} MiB, stalled viewer {stalled_peak:.0f} MiB")
    assert peak < before + 64
    assert 0 < stalled_peak < 64
    raw = (cluster.work / "raw").read_bytes()
    assert raw == cluster.log_file(job, 0).read_bytes()
    assert len(max(raw.split(b"\n"), key=len)) == 10_000_005
    for k in range(20):
        text = (cluster.work / f"shown.{k}").read_bytes()
        for rank in (0, 1):
            got = [int(n) for n in re.findall(rb"^\[%d\] +rank %d line (\d+) " % (rank, rank), text, re.M)]
            assert got == list(range(count)), (k, rank, len(got))
    # Who wakes up late still gets all of it.
    out = stalled.communicate(timeout=60)[0]
    assert stalled.returncode == 0
    assert len(re.findall(rb"^\[1\] +rank 1 line \d+ ", out, re.M)) == count


def test_a_raw_viewer_gets_each_byte_once_over_a_killed_controller(cluster):
    go_on = cluster.work / "go_on"
    text = """
import os, sys, time
print("before " * 1000, flush=True)
while not os.path.exists(sys.argv[1]): time.sleep(0.05)
print("after", flush=True)
"""
    cluster.muster("submit", "--hostfile", cluster.hostfile(1), "--detach", "--", *script(cluster, text), go_on)
    raw = cluster.work / "raw"
    with open(raw, "wb") as out:
        viewer = cluster.popen("logs", "last", "-f", "--rank", "0", "--stream", "out", "--raw", stdout=out)
    wait_until(lambda: raw.stat().st_size > 0, 20, "the viewer has something")
    os.kill(cluster.controller_pid(), signal.SIGKILL)
    cluster.wait_state("running")
    go_on.touch()
    assert viewer.wait(30) == 0
    assert raw.read_bytes() == cluster.log_file(cluster.job(), 0).read_bytes() == b"before " * 1000 + b"\nafter\n"


def test_a_controller_whose_disk_is_full_loses_nothing(cluster, tmp_path):
    """Its files grow no more for a while; the node keeps the bytes."""
    small = cluster.work / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", small]).returncode != 0:
        pytest.skip("no right to mount")
    try:
        count, done = 60_000, cluster.work / "done"
        child = cluster.submit("--output", small / "output", "--", *script(cluster, WRITER), count, done, slots=1)
        wait_until(lambda: (cluster.work / "done.1").exists() and (cluster.work / "done.0").exists(), 60, "the ranks end")
        wait_until(lambda: "No space left" in cluster.muster("ps", "-a", "--json")[0]
                   or any("No space left" in p.read_text(errors="replace") for p in small.glob("output/*/events.jsonl"))
                   or child.poll() is not None, 20, "somebody says so")
        cluster.wait_state("succeeded")
        for command in ("ps", "why"):
            assert "NOT whole" in cluster.muster(command, "last")[0]
        assert cluster.json("why", "last")["unfinished_logs"]
        assert subprocess.run(["mount", "-o", "remount,size=64m", small]).returncode == 0
        code, job, live = cluster.finish(child)
        assert code == 0
        assert "No space left" in live
        assert "NOT whole" not in live.split("succeeded after")[1]
        for command in ("ps", "why"):
            assert "NOT whole" not in cluster.muster(command, "last")[0]
        for rank in (0, 1):
            log = cluster.log_file(job, rank)
            wait_until(lambda: log.stat().st_size == count * 64, 30, "all bytes come")
            assert sha(log) == (cluster.work / f"done.{rank}").read_text()
    finally:
        cluster.muster("stop", "--all", "--grace", "0s")
        subprocess.run(["umount", "-l", small])
