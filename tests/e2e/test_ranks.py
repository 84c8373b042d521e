"""Every program of tests/golden/ranks does over two hosts what its README row says. The jobs run side by side: each has its
own pair of workers, one in each of two network namespaces."""

import hashlib
import json
import re
import subprocess

import pytest

from conftest import BIN, PYTHON, RANKS, alive, new_cluster, wait_until
from namespaces import Namespaces

GOLDEN_BIN = BIN / "golden_ranks"

# name: (command, slots, more words of submit). All end by themselves or when one rank fails.
ENDING = {
    "abort": (["abort"], 1, []),
    "argv_json": (["argv_json.py", "a b", "", "$HOME", "'\"\\", "x\ny", '{"a": [1]}', "ä"], 1, []),
    "binary": (["binary.py"], 1, []),
    "bind_port": (["bind_port.py", 20], 2, ["--grace", "1s"]),
    "burst_exit": (["burst_exit.py", 20000, 5], 1, ["--grace", "1s"]),
    "close_stdout": (["close_stdout.py", 1], 1, []),
    "daemonize": (["daemonize.py", 60], 1, []),
    "early_exit": (["early_exit.py", 1, 3, 0.5], 2, ["--grace", "2s"]),
    "env_json": (["env_json.py", "RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"], 2, []),
    "env_json_all": (["env_json.py", "--all"], 1, []),
    "error_file": (["error_file.py", 1], 1, ["--grace", "1s"]),
    "exit": (["exit.py", 77, 0.2, 1], 1, ["--grace", "1s"]),
    "fail_at_start": (["fail_at_start.py", 3], 2, ["--grace", "1s"]),
    "flood": (["flood", 1], 1, []),
    "half_line": (["half_line.py", 1], 1, []),
    "hang_cpu": (["hang_cpu.py", 2], 1, ["--nnodes", 1]),
    "progress": (["progress.py", 50, 0.5], 1, []),
    "read_stdin": (["read_stdin.sh"], 1, []),
    "rendezvous": (["rendezvous.py"], 4, []),
    "segv": (["segv"], 1, []),
    "selfkill": (["selfkill.py", 9, 0.2], 1, []),
    "step_log": (["step_log.sh", 5, 0.1], 1, []),
    "two_threads": (["two_threads", 5000], 1, []),
}
# Those that run until they are stopped.
ENDLESS = {
    "dataloader": (["dataloader.py", 8], 1, []),
    "early_exit_well": (["early_exit.py", 1, 0, 0.2], 2, []),
    "hang": (["hang_cpu.py", 250], 1, ["--nnodes", 1]),
    "ignore_term": (["ignore_term.py"], 1, []),
    "selfstop": (["selfstop.py"], 1, []),
    "setsid_grandchild": (["setsid_grandchild.py"], 1, []),
    "slow_save": (["slow_save.py", 2], 1, []),
    "slow_save_cut": (["slow_save.py", 60], 1, []),
}

WRAP = """#!/bin/sh
# The host's name says in which namespace it lives: NAME-1 or NAME-2.
host=$1; shift
case $host in *-1) ns={one} ;; *) ns={two} ;; esac
exec ip netns exec $ns "$@"
"""


class Jobs:
    """All jobs of this file, started at once."""

    def __init__(self, cluster, spaces):
        self.cluster, self.spaces = cluster, spaces
        self.wrap = cluster.work / "wrap.sh"
        self.wrap.write_text(WRAP.format(one=spaces.name(1), two=spaces.name(2)))
        self.wrap.chmod(0o755)
        self.children = {name: self.start(name, *what) for name, what in (ENDLESS | ENDING).items()}
        self.ended = {}

    def start(self, name, command, slots, more):
        hosts = self.cluster.work / f"hosts.{name}"
        hosts.write_text("".join(f"{name}-{k} slots={slots} addr={self.spaces.address(k)}\n" for k in (1, 2)))
        program = command[0]
        words = ([PYTHON, RANKS / program] if program.endswith(".py") else
                 ["sh", RANKS / program] if program.endswith(".sh") else [GOLDEN_BIN / program])
        # The command line of a job is not searched for leftovers: a grandchild is found by its environment alone.
        return self.cluster.popen("submit", "--hostfile", hosts, "--transport", f"command:{self.wrap} {{host}}",
                                  "--name", name, "--check-timeout", "60s", *more, "--json", "--", *words, *command[1:])

    def end(self, name):
        """(job, live text) once the job has ended."""
        if name not in self.ended:
            code, job, live = self.cluster.finish(self.children[name], timeout=150)
            assert all(n["clean"] for n in job["nodes"]), job["nodes"]
            self.ended[name] = (job, live)
        return self.ended[name]

    def why(self, name):
        return self.cluster.json("why", name)

    def log(self, name, rank, stream="stdout"):
        return self.cluster.log_file(self.end(name)[0], rank, stream).read_bytes()

    def running(self, name, lines, text):
        """Until the job runs and its ranks have written."""
        self.cluster.wait_state("running", name, timeout=120)
        return self.cluster.wait_lines(lines, text, name, timeout=60)

    def stop(self, name, *args):
        out, _ = self.cluster.muster("stop", name, *args)
        return out


@pytest.fixture(scope="module")
def jobs():
    with Namespaces(2) as spaces, new_cluster() as cluster:
        yield Jobs(cluster, spaces)


def cause(why):
    assert len(why["causes"]) == 1, why
    return why["causes"][0]


def fnv1a(data):
    value = 1469598103934665603  # the basis that flood has
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return value


def groups(why):
    """{what ranks were doing: the ranks} of those that are not the cause."""
    return {g["doing"]: g["ranks"] for g in why["others"]}


# --- programs that run until they are stopped; first, so that they need not wait for the others


def test_ignore_term(jobs):
    jobs.running("ignore_term", 2, "")
    out = jobs.stop("ignore_term", "--grace", "1s")
    assert out.count("1 rank needed SIGKILL") == 2 and out.count("  clean  ") == 2, out
    doing = groups(jobs.why("ignore_term"))
    assert list(doing) == ["running; did not end at SIGTERM, killed by us (SIGKILL)"], doing


def test_selfstop(jobs):
    jobs.cluster.wait_state("running", "selfstop", timeout=120)
    def stopped():
        ranks = jobs.cluster.json("ps", "selfstop")["ranks"]
        return len(ranks) == 2 and all(r.get("stopped") for r in ranks)
    wait_until(stopped, 20, "both ranks are shown as stopped")
    assert groups(jobs.why("selfstop")) == {"stopped (state T)": [0, 1]}
    jobs.stop("selfstop", "--grace", "60s")
    for rank in (0, 1):
        assert b"got TERM" in jobs.log("selfstop", rank)
    assert not any(r.get("needed_sigkill") for r in jobs.cluster.json("ps", "selfstop")["ranks"])


def test_setsid_grandchild(jobs):
    lines = jobs.running("setsid_grandchild", 2, "grandchild")
    pids = [int(l["text"].split()[1]) for l in lines]
    jobs.stop("setsid_grandchild", "--grace", "1s")
    assert not any(map(alive, pids))


def test_dataloader(jobs):
    lines = jobs.running("dataloader", 2, "children")
    children = {l["rank"]: [int(pid) for pid in l["text"].split()[1:]] for l in lines}
    ranks = {r["rank"]: r["pid"] for r in jobs.cluster.json("ps", "dataloader")["ranks"]}
    # Killed from outside, a rank takes its children along, and the other rank's job is over as well.
    subprocess.run(["kill", "-KILL", str(ranks[1])], check=True)
    job, _ = jobs.end("dataloader")
    assert (job["code"], job["rank"]) == (137, 1)
    assert not any(map(alive, children[0] + children[1]))
    assert "Muster did not send it" in cause(jobs.why("dataloader"))["end"]


def test_slow_save(jobs):
    """TERM comes once, and a grace that is long enough lets the save end."""
    jobs.running("slow_save", 2, "training")
    _, err = jobs.cluster.muster("stop", "slow_save", "--save")
    for rank in (0, 1):
        assert jobs.log("slow_save", rank) == b"training\nsaving\nsaved\n"
    jobs.running("slow_save_cut", 2, "training")
    out = jobs.stop("slow_save_cut", "--grace", "1s")
    assert out.count("1 rank needed SIGKILL") == 2
    assert jobs.log("slow_save_cut", 0) == b"training\nsaving\n"


def test_hang_cpu(jobs):
    """A busy rank that says nothing is shown for what it is, and left alone."""
    jobs.running("hang", 1, "step 2")
    why = jobs.why("hang")
    assert why["state"] == "running" and groups(why) == {"running": [0]}
    assert why["others"][0]["last_line"] == "step 2 loss 7.0"
    jobs.stop("hang", "--grace", "1s")
    job, _ = jobs.end("hang_cpu")
    assert (job["code"], job["rank"]) == (9, 0)


def test_early_exit(jobs):
    jobs.cluster.wait_state("running", "early_exit_well", timeout=120)
    events = lambda: (jobs.cluster.job("early_exit_well")["output_dir"] + "/events.jsonl")
    def told():
        with open(events()) as lines:
            return any("rank 1 on early_exit_well-1 exited with code 0; 3 ranks still run" in l for l in lines)
    wait_until(told, 60, "who has left, and how many still run")
    jobs.stop("early_exit_well", "--grace", "1s")
    doing = groups(jobs.why("early_exit_well"))
    assert doing["exited with code 0"] == [1]
    assert doing["running, ended by us (SIGTERM)"] == [0, 2, 3]
    # With another code it is the cause.
    job, _ = jobs.end("early_exit")
    assert (job["code"], job["rank"], job["host"]) == (3, 1, "early_exit-1")


# --- programs that end by themselves


def test_abort(jobs):
    job, _ = jobs.end("abort")
    assert job["code"] == 134 and job["signal"] == 6
    why = jobs.why("abort")
    first = why["causes"][0]
    assert first["end"].startswith("was killed by SIGABRT (6)")
    assert first["error"].strip().startswith("what():")


def test_argv_json(jobs):
    jobs.end("argv_json")
    for rank in (0, 1):
        assert json.loads(jobs.log("argv_json", rank))["argv"] == ENDING["argv_json"][0][1:]


def test_binary(jobs):
    jobs.end("binary")
    for rank in (0, 1):
        data = jobs.log("binary", rank)
        size, digest = re.search(rb"binary: (\d+) bytes sha256 (\w+)", jobs.log("binary", rank, "stderr")).groups()
        assert len(data) == int(size) and hashlib.sha256(data).hexdigest().encode() == digest
    assert jobs.why("binary")["state"] == "succeeded"  # JSON, whatever the last line is


def test_bind_port(jobs):
    job, _ = jobs.end("bind_port")
    assert (job["code"], job["rank"]) == (98, 0)
    why = jobs.why("bind_port")
    ports = cause(why)["ports"]
    port = re.search(r"cannot bind port (\d+)", cause(why)["error"])[1]
    assert len(ports) == 1 and f":{port} is in use by pid " in ports[0], ports
    assert "bind_port.py" in ports[0] and ports[0].endswith("which is rank 1 of this job")
    assert why["hints"][0]["rule"] == "address-in-use"


def test_burst_exit(jobs):
    job, _ = jobs.end("burst_exit")
    assert job["code"] == 5
    text = jobs.log("burst_exit", job["rank"])
    assert text == b"".join(b"line %07d\n" % i for i in range(20000))
    assert jobs.why("burst_exit")["causes"][0]["lines"][-1]["text"] == "the end after 20000 lines"


def test_close_stdout(jobs):
    job, _ = jobs.end("close_stdout")
    assert job["code"] == 3


def test_daemonize(jobs):
    job, _ = jobs.end("daemonize")
    swept = [p for n in job["nodes"] for p in n["swept"]]
    assert job["code"] == 0 and len(swept) == 2
    assert not any(alive(p["pid"]) for p in swept)


def test_env_json(jobs):
    jobs.end("env_json")
    env = [json.loads(jobs.log("env_json", rank))["env"] for rank in range(4)]
    assert [(e["RANK"], e["LOCAL_RANK"], e["GROUP_RANK"], e["WORLD_SIZE"]) for e in env] == [
        ("0", "0", "0", "4"), ("1", "1", "0", "4"), ("2", "0", "1", "4"), ("3", "1", "1", "4")]
    assert {e["MASTER_ADDR"] for e in env} == {jobs.spaces.address(1)} and len({e["MASTER_PORT"] for e in env}) == 1
    jobs.end("env_json_all")
    rank = json.loads(jobs.log("env_json_all", 0))
    assert int(rank["status"]["SigBlk"], 16) == 0 and int(rank["status"]["SigIgn"], 16) & ~0x1001000 == 0, rank["status"]
    assert rank["fds"]["0"] == "/dev/null" and rank["sid"] == rank["pid"] and not rank["tty"]
    event_fd = rank["env"]["MUSTER_EVENT_FD"]
    assert {fd for fd, path in rank["fds"].items() if not path.startswith("/proc/")} == {"0", "1", "2", event_fd}


def test_error_file(jobs):
    job, _ = jobs.end("error_file")
    assert (job["code"], job["rank"]) == (1, 1)
    first = cause(jobs.why("error_file"))
    assert first["error"] == "ValueError: loss is nan at step 17" and first["error_source"] == "its error file"
    assert first["call_stack"] and 'File "train.py", line 42, in step' in first["lines"][1]["text"]
    assert jobs.why("error_file")["hints"][0]["rule"] == "not-a-number"


def test_exit(jobs):
    job, _ = jobs.end("exit")
    assert (job["code"], job["rank"]) == (77, 1)
    assert jobs.why("exit")["others"][0]["ranks"] == [0]


def test_fail_at_start(jobs):
    job, _ = jobs.end("fail_at_start")
    assert (job["code"], job["rank"], job["host"]) == (1, 3, "fail_at_start-2")
    why = jobs.why("fail_at_start")
    assert cause(why)["error"].startswith("ImportError: libexample.so.12")
    assert cause(why)["lines"][0]["text"].startswith("Traceback")
    assert sorted(r for g in why["others"] for r in g["ranks"]) == [0, 1, 2]


def test_flood(jobs):
    job, _ = jobs.end("flood")
    assert job["code"] == 0
    for rank in (0, 1):
        size, digest = re.search(rb"flood: (\d+) bytes fnv1a (\w+)", jobs.log("flood", rank, "stderr")).groups()
        data = jobs.log("flood", rank)
        assert len(data) == int(size) == 1 << 20 and fnv1a(data) == int(digest, 16)
    assert jobs.why("flood")["state"] == "succeeded"


def test_half_line(jobs):
    _, live = jobs.end("half_line")
    for rank in (0, 1):
        assert jobs.log("half_line", rank) == b"loading weights ... done\n"
    lines = jobs.cluster.lines("half_line")
    assert [l["text"] for l in lines] == ["loading weights ... done"] * 2


def test_progress(jobs):
    jobs.end("progress")
    for rank in (0, 1):
        assert jobs.log("progress", rank, "stderr").count(b"\r") == 51
    # A bar that was redrawn is one line: its last state.
    for group in jobs.why("progress")["others"]:
        assert re.fullmatch(r"done|step   50/50 \[#{30}\] loss [\d.]+", group["last_line"]), group


def test_read_stdin(jobs):
    assert jobs.end("read_stdin")[0]["code"] == 0


def test_rendezvous(jobs):
    job, live = jobs.end("rendezvous")
    assert job["code"] == 0
    for rank in range(8):
        assert live.count(f"[{rank}] rank {rank}/8 ") == 1


def test_segv(jobs):
    job, _ = jobs.end("segv")
    assert job["code"] == 139 and job["signal"] == 11
    assert "was killed by SIGSEGV (11)" in jobs.why("segv")["causes"][0]["end"]
    half = jobs.log("segv", job["rank"]) + jobs.log("segv", job["rank"], "stderr")
    assert half and not half.endswith(b"\n")


def test_selfkill(jobs):
    job, _ = jobs.end("selfkill")
    assert job["code"] == 137
    why = jobs.why("selfkill")
    assert why["causes"][0]["end"] == "was killed by SIGKILL (9); Muster did not send it"
    assert any("no out-of-memory kill in the kernel's log" in n or "could not be read" in n for n in why["kernel_notes"]), why


def test_step_log(jobs):
    job, _ = jobs.end("step_log")
    assert job["code"] == 0 and job["state"] == "succeeded"


def test_two_threads(jobs):
    jobs.end("two_threads")
    for rank in (0, 1):
        for stream in ("stdout", "stderr"):
            numbers = [int(re.search(rb"(\d+)\D*$", l)[1]) for l in jobs.log("two_threads", rank, stream).splitlines()]
            assert len(numbers) == 5000 and numbers == sorted(set(numbers))
