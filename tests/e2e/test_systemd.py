"""deploy/systemd/musterd.service under a real systemd: process 1 of namespaces of its own, with an /etc/systemd, /run and
/var/lib of its own, in a network namespace that the controller reaches. Skipped where systemd is not installed."""

import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from conftest import BIN, SOURCE, wait_until
from namespaces import Namespaces

SYSTEMD = "/lib/systemd/systemd"
UID = 987

# Units that a machine needs, and a test does not.
MASKED = """systemd-journald.service systemd-journald.socket systemd-journald-dev-log.socket systemd-journald-audit.socket
systemd-journal-flush.service systemd-udevd.service systemd-udevd-control.socket systemd-udevd-kernel.socket
systemd-udev-trigger.service systemd-logind.service systemd-networkd.service systemd-resolved.service
systemd-timesyncd.service systemd-tmpfiles-setup.service systemd-tmpfiles-setup-dev.service systemd-sysctl.service
systemd-modules-load.service systemd-random-seed.service systemd-update-utmp.service systemd-remount-fs.service
systemd-binfmt.service systemd-sysusers.service systemd-firstboot.service systemd-hwdb-update.service
systemd-machine-id-commit.service systemd-pstore.service systemd-boot-system-token.service kmod-static-nodes.service
proc-sys-fs-binfmt_misc.automount dbus.service dbus.socket networking.service ssh.service getty.target
dev-hugepages.mount dev-mqueue.mount sys-kernel-debug.mount sys-kernel-tracing.mount sys-kernel-config.mount
sys-fs-fuse-connections.mount console-setup.service keyboard-setup.service apparmor.service
systemd-ask-password-console.path systemd-ask-password-wall.path""".split()

BOOT = r"""set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir -p /run/lock
mount -t tmpfs tmpfs /sys/fs/cgroup
mkdir /sys/fs/cgroup/systemd
mount -t cgroup -o none,name=systemd,xattr cgroup /sys/fs/cgroup/systemd
mount --bind {work}/passwd /etc/passwd
mount --bind {work}/group /etc/group
mount -t tmpfs -o mode=755 tmpfs /etc/systemd/system
mount -t tmpfs -o mode=755 tmpfs /var/lib
mount -t tmpfs -o mode=755 tmpfs /usr/local/bin
cp {bin}/musterd {bin}/muster-shim /usr/local/bin/
cp {work}/units/* /etc/systemd/system/
for unit in {masked}; do ln -s /dev/null /etc/systemd/system/$unit; done
exec env -i container=lxc PATH=/usr/sbin:/usr/bin:/sbin:/bin {systemd} --system
"""


class Cgroups:
    """A cgroup of our own in each hierarchy, which is all that systemd sees of it; gone at the end."""

    def __init__(self, name):
        mounts = [line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
        roots = [pathlib.Path(m[1]) for m in mounts if m[2] in ("cgroup", "cgroup2") and "cpuset" not in m[3].split(",")]
        own = pathlib.Path("/proc/self/cgroup").read_text().splitlines()
        self.folders = []
        for root in roots:
            # Below the cgroup that we are in, which may be another one in each hierarchy.
            for path in {line.split(":", 2)[2] for line in own}:
                folder = pathlib.Path(f"{root}{path}") / name
                if folder.parent.is_dir() and str(os.getpid()) in (folder.parent / "cgroup.procs").read_text().split():
                    try:
                        folder.mkdir()
                    except OSError as error:
                        self.remove()
                        pytest.skip(f"no cgroup of our own: {error}")
                    self.folders.append(folder)
                    break

    def remove(self):
        for folder in self.folders:
            for path, _, _ in os.walk(folder, topdown=False):
                wait_until(lambda: not os.path.isdir(path) or self.removed(path), 10, f"{path} is empty")

    @staticmethod
    def removed(path):
        try:
            os.rmdir(path)
        except OSError:
            return False
        return True


class Machine:
    """A booted systemd on host 1."""

    def __init__(self, made, cluster):
        work = cluster.work / "machine"
        (work / "units").mkdir(parents=True)
        for name, line in (("passwd", f"muster:x:{UID}:{UID}::/var/lib/muster:/usr/sbin/nologin\n"), ("group", f"muster:x:{UID}:\n")):
            text = pathlib.Path(f"/etc/{name}").read_text()
            (work / name).write_text("".join(l for l in text.splitlines(True) if not l.startswith("muster:")) + line)
        shutil.copy(SOURCE / "deploy/systemd/musterd.service", work / "units")
        (work / "units/default.target").write_text(
            "[Unit]\nRequires=basic.target\nAfter=basic.target\nWants=musterd.service\n")
        script = work / "boot.sh"
        script.write_text(BOOT.format(work=work, bin=BIN, masked=" ".join(MASKED), systemd=SYSTEMD))
        self.log = work / "boot.log"
        self.pid = None
        self.cgroups = Cgroups(made.prefix)
        enter = "".join(f"echo $$ > {folder}/cgroup.procs && " for folder in self.cgroups.folders)
        self.child = subprocess.Popen(
            ["sh", "-c", enter + 'exec "$@"', "sh", "ip", "netns", "exec", made.name(1), "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--mount", "--cgroup",
             "--ipc", "--uts", "bash", script], stdin=subprocess.DEVNULL, stdout=open(self.log, "wb"), stderr=subprocess.STDOUT)

    def find(self):
        """The pid of its first process, as it is called out here."""
        children = pathlib.Path(f"/proc/{self.child.pid}/task/{self.child.pid}/children")
        try:
            pids = children.read_text().split()
            self.pid = int(pids[0]) if pids and SYSTEMD in pathlib.Path(f"/proc/{pids[0]}/cmdline").read_text() else None
        except OSError:
            self.pid = None
        return self.pid

    def on(self, *words):
        return subprocess.run(["nsenter", "-t", str(self.pid), "-m", "-p", "-i", "-u", "-C", *words], text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=60)

    def active(self):
        return self.on("systemctl", "is-active", "musterd").stdout.strip() == "active"

    def main_pid(self):
        return int(self.on("systemctl", "show", "-p", "MainPID", "--value", "musterd").stdout)

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)  # and with it all that it has
        self.child.kill()
        self.child.wait()
        self.cgroups.remove()


@pytest.fixture
def machine(cluster):
    if not os.path.exists(SYSTEMD):
        pytest.skip("systemd is not installed")
    with Namespaces(1) as made:
        made.machine = Machine(made, cluster)
        try:
            wait_until(lambda: made.machine.find() or made.machine.child.poll() is not None, 20, "systemd starts")
            if made.machine.child.poll() is not None:
                pytest.skip(f"no systemd can run here: {made.machine.log.read_text()}")
            wait_until(made.machine.active, 60, "the unit is active")
            yield made
        finally:
            made.machine.close()


def test_the_unit_serves_and_ranks_outlive_its_restart(machine, cluster):
    systemd = machine.machine
    via = f"command:{cluster.work}/login {{host}}"
    login = cluster.work / "login"
    login.write_text(f"#!/bin/sh\nshift\nexec nsenter -t {systemd.pid} -m -p -i -u -C env MUSTER_STATE=/run/root \"$@\"\n")
    login.chmod(0o755)
    hostfile = machine.hostfile(cluster.work / "hosts", 2, lambda k: "transport=direct")
    cluster.muster("cert", "init", "--name", "lab")
    # As root over ssh; what root writes into the daemon's folder is the daemon's.
    cluster.muster("cert", "push", "--hostfile", hostfile, "--transport", via, "--remote-dir", "/var/lib/muster/tls")
    assert systemd.on("stat", "-c", "%U %a", "/var/lib/muster/tls/identity.pem").stdout == "muster 600\n"

    child = cluster.popen("submit", "--hostfile", hostfile, "--workdir", "/", "--json", "--", "sh", "-c",
                          "id -un; while [ ! -e /var/lib/muster/go ]; do sleep 0.1; done; echo over $$")
    cluster.wait_state("running")
    cluster.wait_lines(2, "muster")
    before = systemd.main_pid()
    systemd.on("systemctl", "restart", "musterd")
    wait_until(lambda: systemd.active() and systemd.main_pid() != before, 30, "the daemon was started anew")
    # Killed, it comes back by itself.
    before = systemd.main_pid()
    systemd.on("kill", "-KILL", str(before))
    wait_until(lambda: systemd.active() and systemd.main_pid() not in (0, before), 30, "the daemon is back")
    systemd.on("touch", "/var/lib/muster/go")
    code, job, live = cluster.finish(child)
    assert code == 0, live
    assert [n["clean"] for n in job["nodes"]] == [True]
    for rank in (0, 1):
        lines = cluster.log_file(job, rank).read_text().splitlines()
        assert lines[0] == "muster" and lines[1].startswith("over ")
