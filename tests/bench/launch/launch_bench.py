"""Launching: nodes x 8 ranks that do nothing, on network namespaces of this machine with a real sshd each.

Everything of a run is compared within that run: the machine has other load at other times. The hosts have nothing
installed (Muster's programs are covered there), so the first launch pushes the worker. Each has a file system of its own for
its state (tmpfs), as machines have: 64 hosts that make their files in one ext4 are another bench. What they still share is
two cores, and the table of processes.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(os.environ["MUSTER_SOURCE"])
sys.path.insert(0, str(SOURCE / "tests/e2e"))
from conftest import BIN, Cluster, wait_until  # noqa: E402
from namespaces import Namespaces  # noqa: E402

SLOTS = 8


class Rows:
    def __init__(self, as_json):
        self.as_json = as_json
        self.rows = []

    def add(self, name, value, unit="s", of=None, reference=None, better="lower"):
        ratio = value / reference if reference else None
        self.rows.append({"name": name, "value": value, "unit": unit, "ratio": ratio, "of": of, "better": better})
        if not self.as_json:
            text = f" {ratio:.3f} of {of}" if ratio is not None else ""
            print(f"{name:<42} {value:10.2f} {unit:<9}{text}", flush=True)

    def finish(self):
        if self.as_json:
            print(json.dumps(self.rows, indent=1))


def timed(words, **kwargs):
    begin = time.monotonic()
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=500, **kwargs)
    return time.monotonic() - begin, done


class Bench:
    def __init__(self, rows, nodes, repeat, hosts, cluster):
        self.rows, self.nodes, self.repeat, self.hosts, self.cluster = rows, nodes, repeat, hosts, cluster
        self.size = f"{nodes}x{SLOTS}"
        self.noop = hosts.folder / "noop"  # not below the covered folder
        shutil.copy(BIN / "muster_launch_noop", self.noop)
        self.hostfile = hosts.hostfile(cluster.work / "hosts", SLOTS)

    def spawn(self, program):
        words = [BIN / "muster_launch_spawn_loop", str(self.nodes * SLOTS), str(program)]
        return statistics.median(float(timed(words)[1].stdout) for _ in range(self.repeat))

    def bare_ssh(self):
        begin = time.monotonic()
        logins = [subprocess.Popen(["ssh", "-F", self.hosts.ssh_config, self.hosts.name(k), "true"], stdin=subprocess.DEVNULL)
                  for k in range(1, self.nodes + 1)]
        if any(login.wait() for login in logins):
            sys.exit("ssh HOST true failed")
        return time.monotonic() - begin

    def launch(self):
        """(seconds of the whole command, {event text or state: seconds since it was queued})."""
        seconds, done = timed([BIN / "muster", "submit", "--hostfile", self.hostfile, "--transport",
                               f"openssh:-F {self.hosts.ssh_config}", "--json", "--", self.noop],
                              env=self.cluster.env, cwd=self.cluster.work)
        if done.returncode != 0:
            sys.exit(f"muster submit ended with {done.returncode}:\n{done.stderr}{done.stdout}")
        events = pathlib.Path(json.loads(done.stdout)["output_dir"]) / "events.jsonl"
        at = {}
        for line in events.read_text().splitlines():
            event = json.loads(line)
            if event.get("state"):
                at[event["state"]] = event["time_ns"] / 1e9
            elif event["text"].startswith("pushed the worker"):
                at["pushed"] = event["time_ns"] / 1e9
            elif event["text"].startswith("pushing the worker"):
                at.setdefault("pushing", event["time_ns"] / 1e9)
        return seconds, {name: when - at["queued"] for name, when in at.items()}

    def forget_controller(self):
        pid = self.cluster.controller_pid()
        self.cluster.muster("serve", "--stop")
        wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), 30, "the controller ends")

    def muster(self):
        floor = self.spawn(self.noop)
        floor_name = f"{self.nodes * SLOTS} posix_spawns"
        self.rows.add(f"launch.floor.{self.size}", floor)
        self.rows.add(f"launch.shim.{self.size}", self.spawn(f"{BIN}/muster-shim"), of=floor_name, reference=floor)

        seconds, at = self.launch()
        self.rows.add(f"launch.first.{self.size}", seconds)
        self.rows.add(f"launch.first.push.{self.size}", at["pushed"] - at["pushing"])

        ssh = self.bare_ssh()
        self.rows.add(f"launch.ssh_true.{self.nodes}", ssh)
        self.forget_controller()
        seconds, at = self.launch()
        self.rows.add(f"launch.cold.{self.size}", seconds, of=f"{self.nodes} parallel ssh true", reference=ssh)
        self.phases("cold", at)

        runs = [self.launch() for _ in range(self.repeat)]
        seconds, at = sorted(runs, key=lambda run: run[0])[self.repeat // 2]
        self.rows.add(f"launch.warm.{self.size}", seconds, of=floor_name, reference=floor)
        self.phases("warm", at)
        controller = pathlib.Path(f"/proc/{self.cluster.controller_pid()}")
        status = dict(line.split(":", 1) for line in (controller / "status").read_text().splitlines())
        self.rows.add(f"launch.controller.memory.{self.nodes}", int(status["VmRSS"].split()[0]) / 1024, "MiB")
        self.rows.add(f"launch.controller.descriptors.{self.nodes}", len(os.listdir(controller / "fd")), "files")
        return seconds, ssh

    def phases(self, kind, at):
        names = ["queued", "preparing", "starting", "running", "succeeded"]
        for before, after in zip(names, names[1:]):
            self.rows.add(f"launch.{kind}.{before}_to_{after}.{self.size}", at[after] - at[before])

    def peers(self):
        config = self.hosts.ssh_config
        loop = f"for i in 1 2 3 4 5 6 7 8; do {self.noop} & done; wait"
        names = [self.hosts.name(k) for k in range(1, self.nodes + 1)]
        if shutil.which("pdsh"):
            env = os.environ | {"PDSH_SSH_ARGS_APPEND": f"-F {config}"}
            seconds, done = timed(["pdsh", "-R", "ssh", "-f", str(self.nodes), "-w", ",".join(names), loop], env=env)
            self.peer("pdsh", seconds, done)
        else:
            print("pdsh: not installed", file=sys.stderr)
        if shutil.which("mpirun"):
            hostfile = self.cluster.work / "mpi_hosts"
            hostfile.write_text("".join(f"{name} slots={SLOTS}\n" for name in names))
            net = f"{self.hosts.net}.0.0/16"
            seconds, done = timed(["mpirun", "--allow-run-as-root", "--hostfile", hostfile, "-np", str(self.nodes * SLOTS),
                                   "--mca", "plm_rsh_args", f"-F {config}", "--mca", "oob_tcp_if_include", net,
                                   "--mca", "plm_rsh_no_tree_spawn", "1", self.noop])
            self.peer("mpirun", seconds, done)
        else:
            print("mpirun: not installed", file=sys.stderr)
        # torchrun imports PyTorch on each host: some 3 s of CPU and 300 MB, so few hosts here.
        torchrun = SOURCE / ".venv/bin/torchrun"
        few = names[:4]
        begin = time.monotonic()
        jobs = [subprocess.Popen(["ssh", "-F", config, name, f"{torchrun} --nnodes={len(few)} --node-rank={i} "
                                  f"--nproc-per-node={SLOTS} --master-addr={self.hosts.address(1)} --no-python {self.noop}"],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                for i, name in enumerate(few)]
        if any([job.wait() for job in jobs]):
            print("torchrun failed", file=sys.stderr)
        else:
            self.rows.add(f"launch.peer.torchrun.{len(few)}x{SLOTS}", time.monotonic() - begin)

    def peer(self, name, seconds, done):
        if done.returncode == 0:
            self.rows.add(f"launch.peer.{name}.{self.size}", seconds)
        else:
            print(f"{name} ended with {done.returncode}: {done.stderr[-600:]}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(prog="muster_launch_bench", description=__doc__)
    parser.add_argument("--json", action="store_true", help="rows as a JSON list")
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--repeat", type=int, default=3, help="of what takes seconds; the median counts")
    parser.add_argument("--no-peers", action="store_true")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("network namespaces need root")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # the hosts are taken down all the same
    rows = Rows(options.json)
    state = pathlib.Path(tempfile.mkdtemp(prefix="mst-", dir="/tmp"))
    (state / "work").mkdir()
    cluster = Cluster(state, state / "work")
    try:
        with Namespaces(options.nodes, ssh=True) as hosts:
            for k in range(1, options.nodes + 1):
                hosts.configure_sshd(k, f"SetEnv MUSTER_STATE={hosts.folder}/state{k} PATH=/usr/bin:/bin\n")
            hosts.restart_sshd()
            for k in range(1, options.nodes + 1):
                hosts.mount(k, BIN)
                (hosts.folder / f"state{k}").mkdir()
                hosts.mount(k, hosts.folder / f"state{k}")
            bench = Bench(rows, options.nodes, options.repeat, hosts, cluster)
            bench.muster()
            if not options.no_peers:
                bench.peers()
    finally:
        cluster.close()
        shutil.rmtree(state, ignore_errors=True)
    rows.finish()


if __name__ == "__main__":
    main()
