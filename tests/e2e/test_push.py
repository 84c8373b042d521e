"""Hosts with nothing installed: the worker is pushed over the one connection, and found there afterwards.

The controller's programs are covered by an empty file system on each host, its PATH has none, and its state folder is
its own; each test proves that the daemons run what was pushed.
"""

import os
import pathlib
import re
import subprocess

import pytest

from conftest import BIN
from namespaces import Namespaces

HOSTS = 4


@pytest.fixture
def bare():
    with Namespaces(HOSTS, ssh=True) as made:
        for k in range(1, HOSTS + 1):
            state = made.folder / f"state{k}"
            made.configure_sshd(k, f"SetEnv MUSTER_STATE={state} PATH=/usr/bin:/bin\n")
        made.restart_sshd()
        for k in range(1, HOSTS + 1):
            made.mount(k, BIN)
            assert made.on(k, "ls", BIN) == ""
        yield made


class Bare:
    def __init__(self, hosts, cluster, transport):
        self.hosts, self.cluster = hosts, cluster
        self.transport = f"{transport}:-F {hosts.ssh_config}"

    def state(self, k):
        return self.hosts.folder / f"state{k}"

    def run(self, *args, slots=1, timeout=120):
        return self.cluster.finish(self.submit(*args, slots=slots), timeout)

    def submit(self, *args, slots=1):
        hostfile = self.hosts.hostfile(self.cluster.work / "hosts", slots)
        command = args.index("--")
        return self.cluster.popen("submit", "--hostfile", hostfile, "--transport", self.transport,
                                  *args[:command], "--json", *args[command:])

    def programs(self, k):
        """What host k's daemons run: {pid: path}."""
        found = {}
        for pid in self.hosts.pids(k):
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                path = os.readlink(f"/proc/{pid}/exe")
            except OSError:
                continue
            if path.endswith("/musterd") and b"--background" in words:
                found[pid] = path
        return found

    def builds(self, k):
        return sorted(os.listdir(self.state(k) / "bin"))


@pytest.fixture(params=["openssh", "ssh"])
def push(bare, cluster, request):
    return Bare(bare, cluster, request.param)


def test_pushed_once_to_hosts_with_nothing_installed(push):
    code, job, live = push.run(*push.cluster.rank("rendezvous.py"), slots=2)
    assert code == 0, live
    assert len(re.findall(r"^\[\d+\] .*barrier ok", live, re.M)) == 2 * HOSTS
    assert f"pushed the worker to {HOSTS} of {HOSTS} nodes" in live
    [build] = {tuple(push.builds(k)) for k in range(1, HOSTS + 1)}
    assert len(build) == 1
    for k in range(1, HOSTS + 1):
        [path] = push.programs(k).values()
        assert path == f"{push.state(k)}/bin/{build[0]}/musterd"
        assert (push.state(k) / "bin").stat().st_mode & 0o777 == 0o700

    # A controller that does not know these hosts yet.
    push.cluster.muster("serve", "--stop")
    code, _, live = push.run("--", "true")
    assert code == 0, live
    assert "the worker to" not in live
    assert {tuple(push.builds(k)) for k in range(1, HOSTS + 1)} == {build}


def test_two_controllers_push_at_once(push, cluster):
    other = dict(cluster.env) | {"MUSTER_STATE": str(cluster.state / "other")}
    first = push.submit("--", "true")
    words = [str(BIN / "muster"), "submit", "--hostfile", str(cluster.work / "hosts"), "--transport",
             push.transport, "--json", "--", "true"]
    second = subprocess.run(words, env=other, cwd=cluster.work, capture_output=True, stdin=subprocess.DEVNULL, timeout=120)
    try:
        assert second.returncode == 0, second.stderr.decode()
        code, _, live = cluster.finish(first, 120)
        assert code == 0, live
        for k in range(1, HOSTS + 1):
            assert len(push.builds(k)) == 1
    finally:
        subprocess.run([BIN / "muster", "serve", "--stop", "--force"], env=other, timeout=60)
