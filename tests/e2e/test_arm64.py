"""The worker of arm64 hosts (`./dev build arm64`), pushed and run by qemu's user emulation: a host whose `uname -m` says aarch64,
in namespaces of its own, where the kernel hands arm64 programs to qemu. Skipped where one of these is missing."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import BIN

ARM64 = BIN.parents[1] / "arm64/bin"
QEMU = shutil.which("qemu-aarch64-static")
# The head of an ELF file for arm64, and the bits of it that count.
MAGIC = "7f454c460201010000000000000000000200b700"
MASK = "ffffffffffffff00fffffffffffffffffeffffff"


def escaped(text):
    return "".join(f"\\x{text[i:i + 2]}" for i in range(0, len(text), 2))


def inside(work, script, env, timeout=100):
    """Runs shell text as root of a user namespace with qemu for arm64 programs."""
    path = work / "inside.sh"
    rule = f":muster:M::{escaped(MAGIC)}:{escaped(MASK)}:{QEMU}:F"
    path.write_text("set -e\nip link set lo up\nmount -t binfmt_misc none /proc/sys/fs/binfmt_misc\n"
                    f"printf '%s' '{rule}' > /proc/sys/fs/binfmt_misc/register\n" + script)
    return subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "--net", "--pid", "--fork", "--mount-proc",
                           "bash", path], env=env, cwd=work, capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL)


@pytest.fixture
def emulated(cluster):
    if not (ARM64 / "musterd").exists():
        pytest.skip("./dev build arm64 has not been run")
    if QEMU is None:
        pytest.skip("no qemu-aarch64-static (Debian's qemu-user-static)")
    tried = inside(cluster.work, f"{ARM64}/muster-shim --version\n", cluster.env)
    if tried.returncode != 0:
        pytest.skip(f"no arm64 programs here: {tried.stderr.strip()}")
    return cluster


def test_the_worker_is_pushed_and_runs_ranks(emulated):
    work = emulated.work
    programs = work / "programs"
    (programs / "bin").mkdir(parents=True)
    for name in ("muster", "musterd", "muster-shim"):
        shutil.copy(BIN / name, programs / "bin")
    shutil.copytree(ARM64, programs / "libexec/muster/aarch64")
    fake = work / "host/bin"
    fake.mkdir(parents=True)
    (fake / "uname").write_text('#!/bin/sh\n[ "$1" = -m ] && echo aarch64 && exit\nexec /usr/bin/uname "$@"\n')
    login = work / "login"
    login.write_text(f"#!/bin/sh\nshift\nexport PATH={fake}:/usr/bin:/bin MUSTER_STATE={work}/host/state\nexec \"$@\"\n")
    for program in (fake / "uname", login):
        program.chmod(0o755)
    (work / "hosts").write_text("n1 slots=2 transport=command\n")
    muster = programs / "bin/muster"
    done = inside(work, f"""
{muster} submit --hostfile hosts --transport 'command:{login} {{host}}' --json -- sh -c 'echo rank $RANK of $WORLD_SIZE' > job.json
for process in /proc/[0-9]*; do readlink $process/exe; tr '\\0' ' ' < $process/cmdline; echo; done > processes 2> /dev/null || true
{muster} serve --stop --force
""", emulated.env)
    assert done.returncode == 0, done.stderr
    job = json.loads((work / "job.json").read_text())
    assert job["world"] == 2 and [n["clean"] for n in job["nodes"]] == [True]
    assert [emulated.log_file(job, k).read_text() for k in (0, 1)] == [f"rank {k} of 2\n" for k in (0, 1)]
    assert "pushed the worker to 1 of 1 nodes" in done.stderr
    # What ran is the pushed program, and by qemu.
    [build] = (work / "host/state/bin").iterdir()
    assert (build / "musterd").read_bytes() == (ARM64 / "musterd").read_bytes()
    assert f"{QEMU} {build}/musterd" in (work / "processes").read_text()
