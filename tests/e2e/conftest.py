"""Real processes: a controller, two worker daemons as two hosts on this machine, and ranks that misbehave.

Everything of a test lives below one state folder; its path is in the environment or the command line of each process,
which is how the fixture finds what is left at the end.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import pytest

SOURCE = pathlib.Path(os.environ.get("MUSTER_SOURCE", pathlib.Path(__file__).parents[2]))
BIN = pathlib.Path(os.environ.get("MUSTER_BIN", SOURCE / "build/release/bin"))
GOLDEN = SOURCE / "tests/golden"
RANKS = GOLDEN / "ranks"
MUSTER = str(BIN / "muster")
# Shims of version managers cost start-up time for each rank.
PYTHON = os.path.realpath(sys.executable)


def free_port(address="127.0.0.1"):
    with socket.socket() as s:
        s.bind((address, 0))
        return s.getsockname()[1]


def alive(pid):
    """Whether a process runs; a zombie does not."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def wait_until(condition, timeout=10.0, what="condition"):
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    pytest.fail(f"{what}: not within {timeout} s")


def processes_with(text):
    """Pids of living processes that have `text` in their command line or environment."""
    found = []
    needle = os.fsencode(text)
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            data = b"".join(pathlib.Path(f"/proc/{entry}/{f}").read_bytes() for f in ("cmdline", "environ"))
        except OSError:
            continue
        if needle in data and alive(int(entry)):
            found.append(int(entry))
    return found


class Cluster:
    """One isolated Muster: its state folder, hosts, and what was started."""

    HOSTS = ("127.0.0.2", "127.0.0.3")

    def __init__(self, state, work):
        self.state = state
        self.work = work
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("MUSTER_", "XDG_"))}
        self.env.update(MUSTER_STATE=str(state), PATH=f"{os.path.dirname(PYTHON)}:{os.environ['PATH']}")
        self.children = []

    def hostfile(self, slots=2, hosts=HOSTS, options="", name="hosts"):
        path = self.work / name
        path.write_text("".join(f"{h} slots={slots} {options}\n" for h in hosts))
        return str(path)

    def popen(self, *args, **kwargs):
        kwargs = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL} | kwargs
        child = subprocess.Popen([MUSTER, *map(str, args)], env=self.env, cwd=self.work, **kwargs)
        self.children.append(child)
        return child

    def muster(self, *args, code=0, timeout=60):
        """Runs muster; gives stdout and stderr as text and checks the exit code."""
        done = subprocess.run([MUSTER, *map(str, args)], env=self.env, cwd=self.work, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=timeout)
        out, err = (b.decode("utf-8", "strict") for b in (done.stdout, done.stderr))
        assert done.returncode == code, f"exit code {done.returncode}\n--- stdout\n{out}\n--- stderr\n{err}"
        return out, err

    def json(self, *args, code=0, timeout=60):
        return json.loads(self.muster(*args, "--json", code=code, timeout=timeout)[0])

    def rank(self, name, *args):
        """The words after `--` for one of the golden ranks."""
        path = RANKS / name
        return ["--", *([PYTHON] if name.endswith(".py") else ["sh"]), str(path), *map(str, args)]

    def submit(self, *args, slots=2, options="", **kwargs):
        command = args.index("--") if "--" in args else len(args)
        return self.popen("submit", "--hostfile", self.hostfile(slots, options=options), *args[:command], "--json",
                          *args[command:], **kwargs)

    def finish(self, child, timeout=60):
        """Waits for a `muster submit --json`: (exit code, the job's JSON, live output)."""
        out, err = child.communicate(timeout=timeout)
        job = json.loads(out)
        assert job["code"] == child.returncode, (child.returncode, out, err)
        return child.returncode, job, err.decode("utf-8", "strict")

    def run(self, *args, slots=2, timeout=60):
        return self.finish(self.submit(*args, slots=slots), timeout)

    def job(self, job="last"):
        jobs = self.json("ps", "-a")["jobs"]
        return next((j for j in jobs if job in ("last", j["job"], j["name"])), None)

    def wait_state(self, state, job="last", timeout=20):
        return wait_until(lambda: (j := self.job(job)) and j["state"] == state and j, timeout, f"job is {state}")

    def lines(self, job="last", *args):
        """All lines of a job as JSON objects."""
        out, _ = self.muster("logs", job, "--json", *args)
        return [json.loads(line) for line in out.splitlines()]

    def wait_lines(self, count, text, job="last", timeout=20):
        """Until `count` whole lines contain `text`."""
        def found():
            lines = [l for l in self.lines(job) if text in l["text"] and not l.get("partial")]
            return lines if len(lines) >= count else None
        return wait_until(found, timeout, f"{count} lines with {text!r}")

    def log_file(self, job, rank, stream="stdout", attempt=0):
        return pathlib.Path(job["output_dir"]) / "ranks" / f"attempt_{attempt}" / str(rank) / f"{stream}.log"

    def controller_pid(self):
        return self.json("version")["controller"]["pid"]

    def processes(self):
        return processes_with(str(self.state))

    def unexpected(self):
        """Processes other than worker daemons: {pid: command line}."""
        lines = {}
        for pid in self.processes():
            try:
                line = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if "musterd" not in line:
                lines[pid] = line
        return lines

    def close(self):
        """Ends every process, then says what was still there although it should not have been."""
        subprocess.run([MUSTER, "stop", "--all", "--grace", "1s"], env=self.env, timeout=60, capture_output=True,
                       stdin=subprocess.DEVNULL)
        subprocess.run([MUSTER, "serve", "--stop", "--force"], env=self.env, timeout=60, capture_output=True,
                       stdin=subprocess.DEVNULL)
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.communicate()
        # Worker daemons are meant to stay; nothing else is.
        deadline = time.monotonic() + 5
        while (left := self.unexpected()) and time.monotonic() < deadline:
            time.sleep(0.05)
        for _ in range(100):
            for pid in self.processes():
                os.kill(pid, signal.SIGKILL)
            if not self.processes():
                break
            time.sleep(0.05)
        return left


@contextlib.contextmanager
def new_cluster():
    state = pathlib.Path(tempfile.mkdtemp(prefix="mst-", dir="/tmp"))  # short: Unix sockets live below
    work = state / "work"
    work.mkdir()
    made = Cluster(state, work)
    try:
        yield made
    finally:
        left = made.close()
        if not os.environ.get("MUSTER_E2E_KEEP"):
            shutil.rmtree(state, ignore_errors=True)
    assert not left, f"left behind: {left}"


@pytest.fixture
def cluster():
    with new_cluster() as made:
        yield made
