"""Hosts as they are found in the wild, all without the worker: one row a kind, the same rows for each transport over ssh."""

import dataclasses
import os
import signal
import subprocess
import sys
import typing

import pytest

from conftest import BIN, Cluster, wait_until
from namespaces import Namespaces

BASTION = 7
KINDS = 9

# What a host's sshd says before its usual configuration; {home} is a folder of the test's.
SSHD = {
    2: "ForceCommand HOME={home} /bin/csh -c \"$SSH_ORIGINAL_COMMAND\"\n",
    3: "AllowTcpForwarding no\nDisableForwarding yes\n",
    6: "ForceCommand exit 0\n",
    BASTION: "MaxStartups 3\n",
}
SILENT, STALLING = 2201, 2202
LISTENER = """
import socket, sys, time
s = socket.create_server(("", int(sys.argv[1])))
kept = []
while True:
    kept.append(s.accept()[0])
    kept[-1].sendall(sys.argv[2].encode())
"""


@dataclasses.dataclass
class Row:
    name: str
    hosts: tuple = (1,)
    port: int = 0
    jump: bool = False
    before: typing.Callable = lambda hosts: None     # makes it so
    during: typing.Callable = lambda hosts: None     # once the job is submitted
    after: typing.Callable = lambda hosts: None      # undoes it
    refused: tuple = ()                              # words of the refusal, by transport if they differ; none: it works
    home: str = "state{k}"                           # where the pushed worker lies, below the test's folder


def state(hosts, k):
    return hosts.folder / f"state{k}"


def forget_worker(hosts, k):
    """As on the first day: no daemon, nothing pushed."""
    for pid in hosts.pids(k):
        try:
            name = os.readlink(f"/proc/{pid}/exe")
        except OSError:
            continue
        if name.startswith(str(hosts.folder)) or "/muster-0/bin/" in name:
            os.kill(pid, signal.SIGKILL)
    for folder in (state(hosts, k), "/var/tmp/muster-0", "/tmp/muster-0", "/dev/shm/muster-0"):
        hosts.on(k, "sh", "-c", f"rm -rf {folder}/*")


def small_and_noexec(hosts, k, state_options):
    """Host k's state folder with these mount options, and a /var/tmp of its own."""
    state(hosts, k).mkdir(exist_ok=True)
    hosts.mount(k, state(hosts, k), f"mode=0700,{state_options}")
    hosts.mount(k, "/var/tmp", "mode=1777")


def nowhere(hosts):
    state(hosts, 1).mkdir(exist_ok=True)
    hosts.mount(1, state(hosts, 1), "mode=0700,size=2m")
    hosts.mount(1, "/var/tmp", "mode=1777,size=2m")
    hosts.mount(1, "/dev/shm", "mode=1777,noexec")
    # /tmp has what the test itself needs there, so only Muster's folder in it is covered.
    hosts.on(1, "sh", "-c", "mkdir -m 0700 -p /tmp/muster-0 && mount -t tmpfs -o ro none /tmp/muster-0")


def somewhere(hosts):
    for folder in ("/tmp/muster-0", "/dev/shm", "/var/tmp", state(hosts, 1)):
        hosts.on(1, "umount", folder)
    os.rmdir("/tmp/muster-0")


def cut(hosts):
    folder = state(hosts, 1) / "bin"
    wait_until(lambda: list(folder.glob(".push-*/muster*")), 60, "the push is under way")
    for pid in hosts.sessions(1):
        os.kill(pid, signal.SIGKILL)


def delay(ms, loss=0):
    return lambda hosts: hosts.run("delay", 1, ms, loss)


def heal(hosts):
    hosts.run("heal", 1)


NO_BANNER = {"openssh": "timed out", "ssh": "no ssh banner within 2 s"}
ROWS = [
    Row("csh with a noisy rc file", hosts=(2,)),
    Row("forwarding forbidden", hosts=(3,)),
    Row("no space in the state folder", hosts=(4,), before=lambda h: small_and_noexec(h, 4, "size=2m"), home=""),
    Row("state folder mounted noexec", hosts=(5,), before=lambda h: small_and_noexec(h, 5, "noexec"), home=""),
    Row("no place anywhere", before=nowhere, after=somewhere,
        refused=("no folder on this host can take the worker", "/state1: no space (", "KiB needed",
                 "/tmp/muster-0", "/dev/shm/muster-0: programs may not run there (noexec)", "MUSTER_STATE")),
    Row("300 ms delay", before=delay(150), after=heal),
    Row("5 % loss", before=delay(2, 5), after=heal),
    Row("reset in the middle of the push", before=delay(80), during=cut, after=heal),
    Row("MaxStartups 3 at the bastion", hosts=(1, 2, 3, 8, 9), jump=True),
    Row("closes after login", hosts=(6,), refused=("ssh exited with 0 before the worker answered",)),
    Row("takes the connection and never answers", port=SILENT, refused=(NO_BANNER,)),
    Row("stops in the middle of its banner", port=STALLING, refused=(NO_BANNER,)),
]


@pytest.fixture(scope="module")
def hosts():
    with Namespaces(KINDS, ssh=True) as made:
        home = made.folder / "home"
        home.mkdir()
        (home / ".cshrc").write_text("echo 'this line is on stdout'\n" + "echo " + "x" * 900 + "\n" * 2 +
                                     "echo -n 'no newline, and a MUSTER-BRIDGE '\n")
        for k in range(1, KINDS + 1):
            made.configure_sshd(k, SSHD.get(k, "").format(home=home) +
                                f"SetEnv MUSTER_STATE={state(made, k)} HOME=/proc/none PATH=/usr/bin:/bin\n")
        made.restart_sshd()
        for k in range(1, KINDS + 1):
            made.mount(k, BIN)
        listeners = [subprocess.Popen(["ip", "netns", "exec", made.name(1), sys.executable, "-c", LISTENER, str(port), text])
                     for port, text in ((SILENT, ""), (STALLING, "SSH-2.0-Open"))]
        known = made.folder / "c/ssh/known_hosts"
        yield made
        for listener in listeners:
            listener.kill()
            listener.wait()


def transport(kind, hosts, row):
    options = f"-F {hosts.ssh_config}" + (" -o ConnectTimeout=2" if row.refused else "")
    if row.jump and kind == "ssh":
        options += f" -J {hosts.name(BASTION)}"
    elif row.jump:
        # ssh's own hop must read the same configuration.
        options += f" -o 'ProxyCommand=ssh -F {hosts.ssh_config} -W [%h]:%p {hosts.name(BASTION)}'"
    return f"{kind}:{options}"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name.replace(" ", "_"))
@pytest.mark.parametrize("kind", ["openssh", "ssh"])
def test_row(hosts, cluster, kind, row):
    for k in row.hosts:
        forget_worker(hosts, k)
    row.before(hosts)
    try:
        hostfile = cluster.work / "hosts"
        port = f"port={row.port}" if row.port else ""
        hostfile.write_text("".join(f"{hosts.name(k)} slots=1 addr={hosts.address(k)} {port}\n" for k in row.hosts))
        limit = ["--check-timeout", "5s"] if row.refused else []
        child = cluster.popen("submit", "--hostfile", hostfile, "--transport", transport(kind, hosts, row), *limit, "--json",
                              "--", "true")
        row.during(hosts)
        code, job, live = cluster.finish(child, 120)
        if row.refused:
            assert code == 120, live
            for words in row.refused:
                words = words[kind] if isinstance(words, dict) else words
                assert words in job["message"], job["message"]
        else:
            assert code == 0, live
            assert f"pushed the worker to {len(row.hosts)} of {len(row.hosts)} nodes" in live
            for k in row.hosts:
                folder = f"{state(hosts, k)}/bin" if row.home else "/var/tmp/muster-0/bin"
                programs = hosts.on(k, "sh", "-c", f"ls -A {folder}/*")
                assert programs.split() == ["muster-shim", "musterd"], (folder, programs)
    finally:
        row.after(hosts)
