"""Launching: nodes x 8 ranks that do nothing, on network namespaces of this machine with a real sshd each.

Everything of a run is compared within that run: the machine has other load at other times. Rows named `.cpu` are the CPU
seconds of all processes together, on both sides: what decides here, where all hosts share a few cores. The hosts have nothing
installed (Muster's programs are covered there), so the first launch pushes the worker. Each has a file system of its own for
its state (tmpfs), as machines have: 64 hosts that make their files in one ext4 are another bench.

Larger clusters have simulated workers in one process (muster_launch_sim), which follow the whole protocol without
processes of ranks: those rows are about the controller, which is a real one.
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
import time

from cpu_meter import CpuMeter

SOURCE = pathlib.Path(os.environ["MUSTER_SOURCE"])
sys.path.insert(0, str(SOURCE / "tests/e2e"))
from conftest import BIN, new_cluster, wait_until  # noqa: E402
from namespaces import Namespaces  # noqa: E402
from slurm import Slurm  # noqa: E402

SLOTS = 8
MOST_MEMORY = 256  # MiB, of a controller of 1,000 nodes


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


def submit(words, cluster):
    """(seconds of the whole command, {state or "pushing", "pushed": seconds since it was queued})."""
    seconds, done = timed([BIN / "muster", "submit", "--json", *words], env=cluster.env, cwd=cluster.work)
    if done.returncode != 0:
        sys.exit(f"muster submit ended with {done.returncode}:\n{done.stderr}{done.stdout}")
    at = {}
    for line in (pathlib.Path(json.loads(done.stdout)["output_dir"]) / "events.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event.get("state"):
            at[event["state"]] = event["time_ns"] / 1e9
        elif event["text"].startswith("pushed the worker"):
            at["pushed"] = event["time_ns"] / 1e9
        elif event["text"].startswith("pushing the worker"):
            at.setdefault("pushing", event["time_ns"] / 1e9)
    return seconds, {name: when - at["queued"] for name, when in at.items()}


def controller_cost(cluster):
    """(MiB at most so far, open descriptors) of the controller."""
    controller = pathlib.Path(f"/proc/{cluster.controller_pid()}")
    status = dict(line.split(":", 1) for line in (controller / "status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) / 1024, len(os.listdir(controller / "fd"))


def controller_cpu(cluster):
    """CPU seconds of the controller so far."""
    fields = pathlib.Path(f"/proc/{cluster.controller_pid()}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def phases(rows, name, size, at):
    names = ["queued", "preparing", "starting", "running", "succeeded"]
    for before, after in zip(names, names[1:]):
        rows.add(f"{name}.{before}_to_{after}.{size}", at[after] - at[before])


class Bench:
    def __init__(self, rows, meter, nodes, repeat, hosts, cluster):
        self.rows, self.meter, self.nodes, self.repeat, self.hosts, self.cluster = rows, meter, nodes, repeat, hosts, cluster
        self.size = f"{nodes}x{SLOTS}"
        self.noop = hosts.folder / "noop"  # not below the covered folder
        shutil.copy(BIN / "muster_launch_noop", self.noop)
        self.hostfile = hosts.hostfile(cluster.work / "hosts", SLOTS)

    def cpu(self, run):
        """What `run` gives, and the CPU seconds that everything took meanwhile (None: unknown)."""
        before = self.meter.seconds()
        result = run()
        after = self.meter.seconds()
        return result, None if after is None else after - before

    def add(self, name, seconds, cpu, of=None, reference=(None, None)):
        self.rows.add(name, seconds, of=of, reference=reference[0])
        if cpu is not None:
            self.rows.add(f"{name}.cpu", cpu, unit="CPU s", of=of, reference=reference[1])

    def spawn(self, *words):
        """(seconds, CPU seconds), the medians."""
        command = [BIN / "muster_launch_spawn_loop", str(self.nodes * SLOTS), *map(str, words)]
        runs = [self.cpu(lambda: float(timed(command)[1].stdout)) for _ in range(self.repeat)]
        return tuple(statistics.median(run[i] for run in runs) if runs[0][i] is not None else None for i in (0, 1))

    def bare_ssh(self):
        begin = time.monotonic()
        logins = [subprocess.Popen(["ssh", "-F", self.hosts.ssh_config, self.hosts.name(k), "true"], stdin=subprocess.DEVNULL)
                  for k in range(1, self.nodes + 1)]
        if any([login.wait() for login in logins]):
            sys.exit("ssh HOST true failed")
        return time.monotonic() - begin

    def launch(self):
        return submit(["--hostfile", self.hostfile, "--transport", f"openssh:-F {self.hosts.ssh_config}", "--", self.noop],
                      self.cluster)

    def forget_controller(self):
        pid = self.cluster.controller_pid()
        self.cluster.muster("serve", "--stop")
        wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), 30, "the controller ends")

    def muster(self):
        floor = self.spawn(self.noop)
        floor_name = f"{self.nodes * SLOTS} posix_spawns"
        self.add(f"launch.floor.{self.size}", *floor)
        parents = self.spawn(BIN / "muster_launch_parent", self.noop)
        self.add(f"launch.floor_with_parents.{self.size}", *parents, of=floor_name, reference=floor)
        self.add(f"launch.shim.{self.size}", *self.spawn(BIN / "muster-shim"), of=floor_name, reference=floor)

        seconds, at = self.launch()
        self.rows.add(f"launch.first.{self.size}", seconds)
        self.rows.add(f"launch.first.push.{self.size}", at["pushed"] - at["pushing"])

        ssh = self.cpu(self.bare_ssh)
        self.add(f"launch.ssh_true.{self.nodes}", *ssh)
        self.forget_controller()
        (seconds, at), cpu = self.cpu(self.launch)
        self.add(f"launch.cold.{self.size}", seconds, cpu, of=f"{self.nodes} parallel ssh true", reference=ssh)
        phases(self.rows, "launch.cold", self.size, at)

        runs = sorted((self.cpu(self.launch) for _ in range(self.repeat)), key=lambda run: run[0][0])
        (seconds, at), cpu = runs[self.repeat // 2]
        self.add(f"launch.warm.{self.size}", seconds, cpu, of=floor_name, reference=floor)
        self.rows.add(f"launch.warm_to_parents.{self.size}", seconds, of=f"{floor_name} by parents", reference=parents[0])
        phases(self.rows, "launch.warm", self.size, at)
        memory, descriptors = controller_cost(self.cluster)
        self.rows.add(f"launch.controller.memory.{self.nodes}", memory, "MiB")
        self.rows.add(f"launch.controller.descriptors.{self.nodes}", descriptors, "files")

    def peers(self):
        config = self.hosts.ssh_config
        names = [self.hosts.name(k) for k in range(1, self.nodes + 1)]
        missing = Slurm.missing()
        if missing:
            print(f"srun: not installed: {', '.join(missing)}", file=sys.stderr)
        else:
            with Slurm(self.hosts, SLOTS) as slurm:
                runs = sorted((self.cpu(lambda: timed(slurm.words(self.noop), env=slurm.env)) for _ in range(self.repeat)),
                              key=lambda run: run[0][0])
                self.peer("srun", *runs[self.repeat // 2])
        loop = f"for i in 1 2 3 4 5 6 7 8; do {self.noop} & done; wait"
        if shutil.which("pdsh"):
            env = os.environ | {"PDSH_SSH_ARGS_APPEND": f"-F {config}"}
            words = ["pdsh", "-R", "ssh", "-f", str(self.nodes), "-w", ",".join(names), loop]
            self.peer("pdsh", *self.cpu(lambda: timed(words, env=env)))
        else:
            print("pdsh: not installed", file=sys.stderr)
        if shutil.which("mpirun"):
            hostfile = self.cluster.work / "mpi_hosts"
            hostfile.write_text("".join(f"{name} slots={SLOTS}\n" for name in names))
            net = f"{self.hosts.net}.0.0/16"
            words = ["mpirun", "--allow-run-as-root", "--hostfile", hostfile, "-np", str(self.nodes * SLOTS),
                     "--mca", "plm_rsh_args", f"-F {config}", "--mca", "oob_tcp_if_include", net,
                     "--mca", "plm_rsh_no_tree_spawn", "1", self.noop]
            self.peer("mpirun", *self.cpu(lambda: timed(words)))
        else:
            print("mpirun: not installed", file=sys.stderr)
        self.torchrun(names[:4])

    def torchrun(self, names):
        """It imports PyTorch on each host: some 3 s of CPU and 300 MB, so on few hosts here."""
        program = SOURCE / ".venv/bin/torchrun"
        begin = time.monotonic()
        jobs = [subprocess.Popen(["ssh", "-F", self.hosts.ssh_config, name, f"{program} --nnodes={len(names)} --node-rank={i} "
                                  f"--nproc-per-node={SLOTS} --master-addr={self.hosts.address(1)} --no-python {self.noop}"],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                for i, name in enumerate(names)]
        if any([job.wait() for job in jobs]):
            print("torchrun failed", file=sys.stderr)
        else:
            self.rows.add(f"launch.peer.torchrun.{len(names)}x{SLOTS}", time.monotonic() - begin)

    def peer(self, name, result, cpu):
        seconds, done = result
        if done.returncode == 0:
            self.add(f"launch.peer.{name}.{self.size}", seconds, cpu)
        else:
            print(f"{name} ended with {done.returncode}: {done.stderr[-600:]}", file=sys.stderr)


def simulated(rows, nodes, repeat):
    """A real controller over `nodes` simulated workers."""
    with new_cluster() as cluster:
        workers = subprocess.Popen([BIN / "muster_launch_sim", cluster.state, str(nodes)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        try:
            assert workers.stdout.readline() == b"ready\n"
            hostfile = cluster.work / "hosts"
            hostfile.write_text("".join(f"127.1.{i // 250}.{1 + i % 250} slots={SLOTS}\n" for i in range(nodes)))
            launch = ["--hostfile", hostfile, "--", "train"]
            size = f"{nodes}x{SLOTS}"
            seconds, at = submit(launch, cluster)
            rows.add(f"launch.sim.cold.{size}", seconds)
            rows.add(f"launch.sim.cold.controller_cpu.{size}", controller_cpu(cluster), "CPU s")
            phases(rows, "launch.sim.cold", size, at)
            before = controller_cpu(cluster)
            seconds, at = sorted((submit(launch, cluster) for _ in range(repeat)), key=lambda run: run[0])[repeat // 2]
            rows.add(f"launch.sim.warm.{size}", seconds)
            rows.add(f"launch.sim.warm.controller_cpu.{size}", (controller_cpu(cluster) - before) / repeat, "CPU s")
            phases(rows, "launch.sim.warm", size, at)
            memory, descriptors = controller_cost(cluster)
            rows.add(f"launch.sim.controller.memory.{nodes}", memory, "MiB", of=f"{MOST_MEMORY} MiB", reference=MOST_MEMORY)
            rows.add(f"launch.sim.controller.descriptors.{nodes}", descriptors, "files")
        finally:
            # First the controller: it would start real workers in place of those that end.
            cluster.muster("serve", "--stop", "--force")
            workers.stdin.close()
            workers.wait()


def main():
    parser = argparse.ArgumentParser(prog="muster_launch_bench", description=__doc__)
    parser.add_argument("--json", action="store_true", help="rows as a JSON list")
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--repeat", type=int, default=3, help="of what takes seconds; the median counts")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--simulated", type=int, nargs="*", default=[256, 1000], metavar="NODES",
                        help="sizes with simulated workers; none: leave them out")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("network namespaces need root")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # the hosts are taken down all the same
    rows = Rows(options.json)
    with CpuMeter() as meter, new_cluster() as cluster, Namespaces(options.nodes, ssh=True) as hosts:
        for k in range(1, options.nodes + 1):
            hosts.configure_sshd(k, f"SetEnv MUSTER_STATE={hosts.folder}/state{k} PATH=/usr/bin:/bin\n")
        hosts.restart_sshd()
        for k in range(1, options.nodes + 1):
            hosts.mount(k, BIN)
            (hosts.folder / f"state{k}").mkdir()
            hosts.mount(k, hosts.folder / f"state{k}")
        bench = Bench(rows, meter, options.nodes, options.repeat, hosts, cluster)
        bench.muster()
        if not options.no_peers:
            bench.peers()
    for nodes in options.simulated:
        simulated(rows, nodes, options.repeat)
    rows.finish()


if __name__ == "__main__":
    main()
