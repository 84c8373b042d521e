"""Hosts for tests: network namespaces of this machine, each with an sshd if wanted (tests/golden/netns/cluster.sh)."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from conftest import GOLDEN

SCRIPT = str(GOLDEN / "netns/cluster.sh")


class Namespaces:
    """`count` hosts; use as a context manager. Host k is 1..count."""

    def __init__(self, count, ssh=False):
        if os.geteuid() != 0:
            pytest.skip("network namespaces need root")
        self.count = count
        self.ssh = ssh
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mns-", dir="/tmp"))
        self.prefix = f"m{os.getpid()}"
        self.net = None

    def __enter__(self):
        for attempt in range(20):
            self.net = f"10.{100 + (os.getpid() + 7 * attempt) % 150}"
            done = self.run("up", self.count, *(["--ssh"] if self.ssh else []), check=False)
            if done.returncode == 0:
                return self
            if "already routes" not in done.stderr:
                break
        pytest.fail(f"no namespaces: {done.stderr}")

    def __exit__(self, *unused):
        self.run("down", check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *words, check=True):
        env = os.environ | {"CLUSTER_DIR": str(self.folder / "c"), "CLUSTER_PREFIX": self.prefix}
        if self.net:
            env |= {"CLUSTER_NET": self.net, "CLUSTER_NET6": f"fd00:{self.net[3:]}"}
        return subprocess.run([SCRIPT, *map(str, words)], env=env, check=check, text=True, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=60)

    def name(self, k):
        return f"{self.prefix}{k}"

    def address(self, k):
        return f"{self.net}.1.{k}"

    def pids(self, k):
        return [int(p) for p in self.run("pids", k).stdout.split()]

    @property
    def ssh_config(self):
        return self.folder / "c/ssh_config"

    def configure_sshd(self, k, text):
        """Puts `text` before host k's sshd configuration (the first value of an option counts); `restart` applies it."""
        path = self.folder / f"c/ssh/sshd.{k}.conf"
        path.write_text(text + path.read_text())

    def restart_sshd(self):
        for k in range(1, self.count + 1):
            self.run("kill", k)
        self.run("up", self.count, "--ssh")

    def sshd(self, k):
        """The pid of host k's sshd, whose mount namespace all logins there share."""
        return int((self.folder / f"c/sshd.{k}.pid").read_text().split()[0])

    def sessions(self, k):
        """Pids of the sshd processes that carry logins to host k."""
        found = []
        for pid in self.pids(k):
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:  # has just ended
                continue
            if pid != self.sshd(k) and words.startswith(b"sshd: "):
                found.append(pid)
        return found

    def mount(self, k, folder, options="mode=0700"):
        """An empty folder over `folder`, on host k alone. After `restart_sshd`."""
        subprocess.run(["nsenter", "-m", "-t", str(self.sshd(k)), "mount", "-t", "tmpfs", "-o", options, "none",
                        str(folder)], check=True)

    def on(self, k, *words):
        """Output of a command on host k as a login sees its files."""
        done = subprocess.run(["nsenter", "-m", "-t", str(self.sshd(k)), *map(str, words)], text=True,
                              capture_output=True)
        return done.stdout

    def hostfile(self, path, slots=1, options=lambda k: ""):
        """Names of the hosts with their addresses as addr=."""
        lines = [f"{self.name(k)} slots={slots} addr={self.address(k)} {options(k)}" for k in range(1, self.count + 1)]
        path.write_text("\n".join(lines) + "\n")
        return str(path)
