"""muster stage: trees of files on their way to hosts, each a worker daemon of this machine with its own state folder."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

import pytest

from conftest import MUSTER, PYTHON, wait_until

HOSTS = tuple(f"127.0.0.{i}" for i in range(2, 8))
MIB = 1 << 20


def make_tree(folder, size, seed=b"1"):
    """A tree of about `size` bytes: large and small files, modes, links, an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "lib").mkdir(parents=True)
    (folder / "empty").mkdir()
    block = b"".join(bytes([i]) * 61 for i in range(256)) + seed
    for i in range(4):
        with open(folder / f"lib/lib{i}.so", "wb") as file:
            for k in range(size // 4 // len(block)):
                file.write(b"%d %d " % (i, k) + block)
    for i in range(200):
        (folder / f"m{i}.py").write_text(f"x = {i}\n" * (i % 7))
    (folder / "run.sh").write_text("#!/bin/sh\necho ok\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "current").symlink_to("lib/lib0.so")
    return folder


def listing(folder):
    found = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = ("link", os.readlink(path))
        elif path.is_dir():
            found[name] = ("folder", path.stat().st_mode)
        else:
            found[name] = ("file", path.stat().st_mode, path.read_bytes())
    return found


class Stage:
    def __init__(self, cluster):
        self.cluster = cluster
        self.tree = cluster.work / "tree"
        self.hosts = cluster.hostfile(1, HOSTS)

    def __call__(self, *args, code=0):
        return self.cluster.json("stage", *args, "--hostfile", self.hosts, code=code)

    def versions(self, host):
        folder = self.cluster.state / host / "stage"
        return sorted(p for p in folder.glob("*") if len(p.name) == 24)

    def helpers(self, host):
        """Pids of the host's staging processes."""
        found = []
        for pid in self.cluster.processes():
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[1:3] == [b"--stage", os.fsencode(self.cluster.state / host)]:
                found.append(pid)
        return found

    def catch(self, host, tree):
        """Starts a transfer and stops the host's staging process in its middle: (the command, the process)."""
        for attempt in range(10):
            make_tree(tree, 48 * MIB, b"%d" % attempt)
            child = self.cluster.popen("stage", tree, "--hostfile", self.hosts, "--json")
            while child.poll() is None:
                partial = [p for p in (self.cluster.state / host).glob("stage/*.partial/lib/*") if p.stat().st_size]
                helpers = self.helpers(host) if partial else []
                if not helpers:
                    time.sleep(0.001)
                    continue
                os.kill(helpers[0], signal.SIGSTOP)
                if list((self.cluster.state / host).glob("stage/*.partial/lib/*")):
                    return child, helpers[0]
                os.kill(helpers[0], signal.SIGCONT)
            child.communicate()
        pytest.fail("every transfer was over before it was seen")


@pytest.fixture
def stage(cluster):
    return Stage(cluster)


def test_every_host_gets_the_tree_and_the_controller_sends_little(stage):
    make_tree(stage.tree, 24 * MIB)
    (stage.tree / ".musterignore").write_text("*.tmp\n")
    (stage.tree / "junk.tmp").write_text("junk")
    (stage.tree / "__pycache__").mkdir()
    link = stage.cluster.work / "opt/run"
    end = stage(stage.tree, "--to", f"{link}/")
    (stage.tree / "junk.tmp").unlink()
    (stage.tree / "__pycache__").rmdir()
    assert end["bytes_sent"] <= 3 * end["bytes"]
    assert end["ignored"] == 2
    for host in end["hosts"]:
        assert (host["state"], host["bytes_missing"], host["through_controller"]) == ("done", 0, False), host
        assert listing(host["path"]) == listing(stage.tree)
    # Each byte that did not come from the controller came from another host.
    arrived = sum(host["bytes_fetched"] for host in end["hosts"])
    assert arrived == 6 * end["bytes"]
    # They share one file system here, so the last one to finish has the link.
    assert os.readlink(link) in [host["path"] for host in end["hosts"]]

    again = stage(stage.tree)
    assert (again["content_id"], again["bytes_sent"]) == (end["content_id"], 0)

    (stage.tree / "m3.py").write_text("y = 1\n")
    changed = stage(stage.tree)
    assert changed["content_id"] != end["content_id"]
    assert changed["bytes_sent"] < MIB  # the manifest and one file
    assert [len(stage.versions(host)) for host in HOSTS] == [2] * 6
    pruned = stage(stage.tree, "--prune")
    # One version is kept by the link.
    kept = [host["kept"] for host in pruned["hosts"]]
    assert sum("leads to it" in "".join(why) for why in kept) == 1
    assert sum(len(host["pruned"]) for host in pruned["hosts"]) == 5


def test_a_corrupted_file_is_found_and_mended(stage):
    make_tree(stage.tree, 4 * MIB)
    end = stage(stage.tree)
    victim = pathlib.Path(end["hosts"][3]["path"]) / "lib/lib2.so"
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(data)
    found = stage(stage.tree, "--verify", "--dry-run", code=120)
    damaged = {host["host"]: host["damaged"] for host in found["hosts"] if host["damaged"]}
    assert damaged == {HOSTS[3]: ["lib/lib2.so: other content"]}
    assert victim.read_bytes() == bytes(data)
    out, _ = stage.cluster.muster("stage", stage.tree, "--verify", "--hostfile", stage.hosts)
    assert f"{HOSTS[3]}: mended: lib/lib2.so: other content" in out
    assert listing(end["hosts"][3]["path"]) == listing(stage.tree)
    stage(stage.tree, "--verify", "--dry-run")


def test_a_host_killed_in_the_middle_is_resumed(stage):
    host = HOSTS[3]
    child, helper = stage.catch(host, stage.tree)
    daemon = int((stage.cluster.state / host / "lock").read_text().split()[0])
    os.kill(daemon, signal.SIGKILL)
    os.kill(helper, signal.SIGKILL)
    out, err = child.communicate(timeout=60)
    end = json.loads(out)
    assert child.returncode == 0, err
    assert [h["state"] for h in end["hosts"]] == ["done"] * 6
    resumed = end["hosts"][3]
    # What it had verified was not sent again.
    assert resumed["bytes_had"] > 0 and resumed["bytes_had"] + resumed["bytes_fetched"] == end["bytes"]
    assert end["bytes_sent"] <= 3 * end["bytes"]
    assert listing(resumed["path"]) == listing(stage.tree)
    assert not list((stage.cluster.state / host / "stage").glob("*.partial"))


def test_a_stopped_host_delays_only_itself(stage):
    host = HOSTS[0]  # fed by the controller, and feeding others
    child, helper = stage.catch(host, stage.tree)
    others = [h for h in HOSTS if h != host]
    wait_until(lambda: all(stage.versions(h) for h in others), 50, "the others have it")
    assert not stage.versions(host) and child.poll() is None
    os.kill(helper, signal.SIGCONT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    assert all(h["state"] == "done" for h in json.loads(out)["hosts"])


def test_a_job_runs_from_the_staged_tree(stage):
    make_tree(stage.tree, MIB)
    (stage.tree / "sub").mkdir()
    (stage.tree / "sub/train.py").write_text(
        "import json, os, sys\n"
        "print(json.dumps([os.getcwd(), sys.argv, os.environ['MUSTER_STAGE'], os.environ['CONFIG']]))\n")
    child = subprocess.run(
        [MUSTER, "submit", "--stage", str(stage.tree),
         "--hostfile", stage.hosts, "--env", "CONFIG={stage}/m1.py", "--output", str(stage.cluster.work / "output"),
         "--json", "--", PYTHON, f"{stage.tree}/sub/train.py", "--data=/data/x", f"--config={stage.tree}/m2.py"],
        cwd=stage.tree / "sub", env=stage.cluster.env, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    assert child.returncode == 0, child.stderr.decode()
    job = json.loads(child.stdout)
    for rank, host in enumerate(HOSTS):
        folder = str(stage.versions(host)[0])
        seen = json.loads(stage.cluster.log_file(job, rank).read_text())
        assert seen == [f"{folder}/sub", [f"{folder}/sub/train.py", "--data=/data/x", f"--config={folder}/m2.py"],
                        folder, f"{folder}/m1.py"]
    # From outside, relative words that lead into the tree mean its files.
    child = subprocess.run(
        [MUSTER, "submit", "--stage", stage.tree.name, "--hostfile", stage.hosts, "--env", "CONFIG=x", "--output",
         str(stage.cluster.work / "output"), "--json", "--", PYTHON, f"{stage.tree.name}/sub/train.py", "sub"],
        cwd=stage.tree.parent, env=stage.cluster.env, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    assert child.returncode == 0, child.stderr.decode()
    job = json.loads(child.stdout)
    folder = str(stage.versions(HOSTS[0])[0])
    seen = json.loads(stage.cluster.log_file(job, 0).read_text())
    assert seen == [folder, [f"{folder}/sub/train.py", "sub"], folder, "x"]
    # A version that a running job uses is not removed.
    job = stage.cluster.popen("submit", "--stage", stage.tree, "--hostfile", stage.hosts, "--json", "--", "sleep", "60")
    stage.cluster.wait_state("running")
    end = stage("--prune")
    assert all("a job uses it" in "".join(h["kept"]) for h in end["hosts"])
    stage.cluster.muster("stop", "last", "--grace", "1s")
    job.communicate(timeout=30)
    end = stage("--prune")
    assert all(len(h["pruned"]) == 1 for h in end["hosts"])


def test_a_full_disk_is_said_before_anything_is_sent(stage):
    if os.geteuid() != 0:
        pytest.skip("a small file system needs root")
    make_tree(stage.tree, 24 * MIB)
    small = stage.cluster.state / HOSTS[1]
    small.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=0700", "tmpfs", small], check=True)
    try:
        end = stage(stage.tree, code=121)
        states = [host["state"] for host in end["hosts"]]
        assert states == ["done", "failed", "done", "done", "done", "done"]
        error = end["hosts"][1]["error"]
        assert "are needed" in error and "are free" in error and str(small) in error
        assert end["hosts"][1]["bytes_fetched"] == 0
    finally:
        for pid in stage.cluster.processes():
            try:
                if os.fsencode(small) in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() or \
                        pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().find(HOSTS[1].encode()) >= 0:
                    os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        subprocess.run(["umount", "-l", small], check=True)


@pytest.mark.parametrize("words,message", [
    ([], "stage what?"),
    (["/nonexistent/x"], "/nonexistent/x: No such file or directory"),
    (["{tree}", "--to", "relative"], "--to relative: give an absolute path in UTF-8"),
    (["{tree}", "--to", "/"], "the link needs a name of its own"),
    (["{tree}", "--to", "/opt/.."], "the link needs a name of its own"),
    (["{tree}", "--to", "/opt/a\nb"], "control character"),
    (["{tree}", "--prune", "--keep", "3"], "one of them says how many stay"),
    (["--verify", "--prune"], "need the folder that was staged"),
    (["{tree}", "--keep", "0"], "--keep"),
])
def test_wrong_input(stage, words, message):
    make_tree(stage.tree, 0)
    words = [w.format(tree=stage.tree) for w in words]
    _, err = stage.cluster.muster("stage", *words, "--hostfile", stage.hosts, code=2)
    assert message in err


def test_what_cannot_be_staged_is_named(stage):
    make_tree(stage.tree, 0)
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(stage.tree / "sock"))
        _, err = stage.cluster.muster("stage", stage.tree, "--hostfile", stage.hosts, code=2)
    assert "sock: a socket can't be staged" in err


def test_a_host_that_cannot_be_reached_does_not_keep_the_others(stage):
    make_tree(stage.tree, MIB)
    hosts = stage.cluster.work / "some"
    hosts.write_text("127.0.0.2 slots=1\n127.0.0.9 slots=1 transport=direct worker_port=1\n127.0.0.3 slots=1\n")
    end = stage.cluster.json("stage", stage.tree, "--hostfile", hosts, code=121)
    assert [h["state"] for h in end["hosts"]] == ["done", "failed", "done"]
    assert "did not say hello" in end["hosts"][1]["error"]
