"""Slurm on the hosts of a bench: munged and slurmctld on this machine, a slurmd in each network namespace."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from namespaces import SCRIPT

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sinfo")


class Slurm:
    """Use as a context manager. `slots` tasks fit on a host, whatever the number of its processors is."""

    def __init__(self, hosts, slots):
        self.hosts, self.slots = hosts, slots
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mslurm-", dir="/tmp"))
        self.children = []
        self.env = os.environ | {"SLURM_CONF": str(self.folder / "slurm.conf"), "CLUSTER_DIR": str(hosts.folder / "c"),
                                 "CLUSTER_PREFIX": hosts.prefix, "PATH": f"{os.environ['PATH']}:/usr/sbin"}

    @staticmethod
    def missing():
        return [name for name in PROGRAMS if not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")]

    def __enter__(self):
        try:
            self.up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *unused):
        for child in reversed(self.children):
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGTERM)
        for child in self.children:
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, *words):
        with open(self.folder / f"output.{len(self.children)}", "wb") as log:
            self.children.append(subprocess.Popen(list(map(str, words)), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                  env=self.env, start_new_session=True))

    def up(self):
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        (self.folder / "state").mkdir()
        (self.folder / "slurm.conf").write_text(self.configuration())
        munge = self.folder / "munge"
        self.start("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={munge}.sock",
                   f"--pid-file={munge}.pid", f"--log-file={munge}.log", f"--seed-file={munge}.seed")
        self.wait((self.folder / "munge.sock").exists, 20, "munged listens")
        self.start("slurmctld", "-D", "-i")
        for k in range(1, self.hosts.count + 1):
            self.start(SCRIPT, "exec", k, shutil.which("slurmd", path=self.env["PATH"]), "-D", "-N", self.hosts.name(k))
        self.wait(self.all_idle, 120, "all nodes are idle")

    def configuration(self):
        nodes = "".join(f"NodeName={self.hosts.name(k)} NodeAddr={self.hosts.address(k)} CPUs={self.slots} State=UNKNOWN\n"
                        for k in range(1, self.hosts.count + 1))
        return f"""\
ClusterName=bench
SlurmctldHost={socket.gethostname()}({self.hosts.net}.0.2)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={self.folder}/munge.sock
CredType=cred/munge
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool.%n
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/slurmd.%n.pid
SlurmctldLogFile={self.folder}/slurmctld.log
SlurmdLogFile={self.folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerType=sched/builtin
MpiDefault=none
ReturnToService=2
SlurmctldPort=26817
SlurmdPort=26818
{nodes}PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

    def all_idle(self):
        done = subprocess.run(["sinfo", "-h", "-o", "%D", "-t", "idle"], env=self.env, capture_output=True, text=True)
        return done.stdout.strip() == str(self.hosts.count)

    def wait(self, condition, seconds, what):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise RuntimeError(f"Slurm: {what}: not within {seconds} s")
            time.sleep(0.1)

    def words(self, program):
        return ["srun", "-N", str(self.hosts.count), "-n", str(self.hosts.count * self.slots), str(program)]
