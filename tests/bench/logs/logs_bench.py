#!/usr/bin/env python3
"""What the ranks' output costs and how fast it gets to the controller's disk and to a viewer.

`./dev bench logs [--json] [--mib 32] [--seconds 60]`

  * flood: 8 ranks on one node write lines as fast as they are taken. Until all bytes are in the controller's files; beside
    it the same ranks into plain files, and under `torchrun --tee 3`. CPU is that of all processes, ranks included, less a
    run that writes nothing.
  * steady: 512 ranks on 64 nodes write a line a second.
  * follow: from the rank's write to the line that `muster logs -f` shows.
"""

import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(os.environ.get("MUSTER_BIN", pathlib.Path(__file__).resolve().parent))
MUSTER, WRITER = str(BIN / "muster"), str(BIN / "muster_logs_writer")
TORCHRUN = BIN.parents[2] / ".venv/bin/torchrun"
RANKS = 8
TICKS = os.sysconf("SC_CLK_TCK")


def stat(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()


def cpu(pid, children=False):
    """Seconds of a process; with those that it has waited for."""
    fields = stat(pid)
    return sum(map(int, fields[11:15 if children else 13])) / TICKS


def processes(name):
    """{pid: parent} of the programs of this name that belong to the bench."""
    found = {}
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and os.path.basename(os.readlink(f"/proc/{entry}/exe")) == name:
                found[int(entry)] = int(stat(entry)[1])
        except OSError:
            continue
    return found


class Bench:
    def __init__(self, work, flags):
        self.work, self.flags = work, flags
        self.env = dict(os.environ, MUSTER_STATE=str(work / "s"))
        self.rows = []

    def muster(self, *args, check=True):
        return subprocess.run([MUSTER, *map(str, args)], env=self.env, cwd=self.work, check=check, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True)

    def hosts(self, nodes, slots):
        path = self.work / f"hosts{nodes}"
        path.write_text("".join(f"127.0.1.{k} slots={slots}\n" for k in range(1, nodes + 1)))
        return path

    def submit(self, nodes, slots, *words):
        self.muster("submit", "--hostfile", self.hosts(nodes, slots), "--check-timeout", "120s", "--detach", "--", WRITER, *words)
        return self.job()

    def job(self):
        return json.loads(self.muster("ps", "last", "--json").stdout)

    def wait(self, state, poll=0.05):
        while (job := self.job())["state"] != state:
            if job["state"] == "failed":
                sys.exit(f"the job failed: {job['message']}")
            time.sleep(poll)
        return job

    def add(self, name, value, unit, better, of=None, limit=None):
        row = {"name": name, "value": round(value, 4), "unit": unit, "ratio": None, "of": of, "better": better}
        if of:
            row["ratio"] = round(value / limit, 3)
        self.rows.append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)

    def controller(self):
        return json.loads(self.muster("version", "--json").stdout)["controller"]["pid"]

    # --- flood

    def first_write(self, path):
        return min(int(p.read_text()) for p in path.parent.glob(path.name + ".*")) / 1e9

    def plain(self, mib):
        mark = self.work / f"plain{mib}"
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        children = []
        for rank in range(RANKS):
            with open(self.work / f"plain.{rank}", "wb") as out:
                children.append(subprocess.Popen([WRITER, "flood", str(mib), str(mark)], stdout=out,
                                                 env=dict(self.env, RANK=str(rank))))
        assert all(child.wait() == 0 for child in children)
        took = time.time() - self.first_write(mark)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        for rank in range(RANKS):
            (self.work / f"plain.{rank}").unlink()
        return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def torchrun(self, mib):
        mark, shown = self.work / f"torch{mib}", self.work / "torch.out"
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(shown, "wb") as out:
            child = subprocess.Popen([TORCHRUN, "--nproc-per-node", str(RANKS), "--tee", "3", "--log-dir", self.work / "torch",
                                      "--no-python", WRITER, "flood", str(mib), mark], stdout=out, stderr=subprocess.DEVNULL)
            size, last = 0, time.time()
            while child.poll() is None:
                if (now := shown.stat().st_size) != size:
                    size, last = now, time.time()
                time.sleep(0.01)
        assert child.returncode == 0
        lines = RANKS * ((mib << 20) // 100)
        with open(shown, "rb") as out:
            got = sum(block.count(b"\n") for block in iter(lambda: out.read(1 << 20), b""))
        assert got >= lines, f"torchrun has shown {got} of {lines} lines"
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        shutil.rmtree(self.work / "torch")
        shown.unlink()
        return last - self.first_write(mark), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def used(self):
        """All CPU seconds so far of the daemons, and of what they have started that has ended."""
        return sum(cpu(pid, True) for pid in self.daemons()) + cpu(self.controller_pid)

    def daemons(self):
        return [pid for pid in processes("musterd") if f"{self.work}/s" in open(f"/proc/{pid}/environ").read()]

    def ours(self, mib):
        mark = self.work / f"muster{mib}"
        before = self.used()
        job = self.submit(1, RANKS, "flood", mib, mark)
        logs = [pathlib.Path(job["output_dir"]) / f"ranks/attempt_0/{r}/stdout.log" for r in range(RANKS)]
        while sum(p.stat().st_size if p.exists() else 0 for p in logs) < RANKS * (mib << 20):
            time.sleep(0.01)
        end = time.time()
        self.wait("succeeded")
        took = end - self.first_write(mark)
        time.sleep(1)  # the node forgets
        shutil.rmtree(job["output_dir"])
        return took, self.used() - before

    def flood(self):
        mib = self.flags.mib
        gb = RANKS * (mib << 20) / 1e9
        self.submit(1, RANKS, "stamp", 1)
        self.wait("succeeded")
        self.controller_pid = self.controller()
        results = {}
        for name, run in {"plain": self.plain, "torchrun": self.torchrun, "muster": self.ours}.items():
            idle = run(0)[1]
            took, used = min(run(mib) for _ in range(2))
            results[name] = (gb / took, (used - idle) / gb)
        for name, (speed, cost) in results.items():
            self.add(f"flood.{name}.speed", speed * 1000, "MB/s", "higher")
            self.add(f"flood.{name}.cpu", cost, "s/GB", "lower")
        for peer in ("plain", "torchrun"):
            self.add(f"flood.muster.speed_over_{peer}", results["muster"][0] * 1000, "MB/s", "higher",
                     {"plain": "plain files", "torchrun": "torchrun --tee 3"}[peer], results[peer][0] * 1000)
            self.add(f"flood.muster.cpu_over_{peer}", results["muster"][1], "s/GB", "lower",
                     {"plain": "plain files", "torchrun": "torchrun --tee 3"}[peer], results[peer][1])

    # --- follow

    def follow(self):
        self.submit(1, 1, "stamp", 200)
        viewer = subprocess.Popen([MUSTER, "logs", "-f", "last"], env=self.env, cwd=self.work, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE)
        late = []
        for line in viewer.stdout:
            late.append((time.time_ns() - int(line.split()[-1])) / 1e6)
        assert viewer.wait() == 0 and len(late) == 200, len(late)
        late = sorted(late[10:])  # without what was there before the viewer
        for name, value in (("median", statistics.median(late)), ("p99", late[int(len(late) * 0.99)]), ("worst", late[-1])):
            self.add(f"follow.{name}", value, "ms", "lower", "limit of 100 ms", 100)

    # --- steady

    def steady(self):
        seconds = self.flags.seconds
        self.submit(64, RANKS, "steady", seconds + 40)
        self.wait("running", 0.5)
        time.sleep(5)
        daemons = self.daemons()
        shims = [pid for pid, parent in processes("muster-shim").items() if parent in daemons]
        assert len(shims) == 64 * RANKS, len(shims)
        watched = daemons + shims
        before, own, begin = sum(map(cpu, watched)), cpu(self.controller_pid), time.time()
        peak = 0
        while time.time() < begin + seconds:
            time.sleep(1)
            with open(f"/proc/{self.controller_pid}/statm") as file:
                peak = max(peak, int(file.read().split()[1]) * 4096)
        took = time.time() - begin
        self.add("steady.worker_cpu_per_8_ranks", 100 * (sum(map(cpu, watched)) - before) / took / 64, "% of a core", "lower",
                 "limit of 2 %", 2)
        self.add("steady.controller_cpu", 100 * (cpu(self.controller_pid) - own) / took, "% of a core", "lower")
        self.add("steady.controller_resident", peak / 2**20, "MiB", "lower", "limit of 64 MiB", 64)
        descriptors = len(os.listdir(f"/proc/{self.controller_pid}/fd"))
        self.add("steady.controller_descriptors", descriptors, "files", "lower")
        self.wait("succeeded", 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--mib", type=int, default=32, help="of each rank in flood")
    parser.add_argument("--seconds", type=int, default=60, help="of steady")
    parser.add_argument("--only", choices=["flood", "follow", "steady"])
    flags = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="mlb-", dir="/var/tmp"))
    bench = Bench(work, flags)
    try:
        bench.submit(1, 1, "stamp", 1)
        bench.wait("succeeded")
        bench.controller_pid = bench.controller()
        for name in ("flood", "follow", "steady"):
            if flags.only in (None, name):
                getattr(bench, name)()
    finally:
        bench.muster("stop", "--all", "--grace", "0s", check=False)
        bench.muster("serve", "--stop", "--force", check=False)
        for pid in bench.daemons():
            os.kill(pid, 15)
        shutil.rmtree(work, ignore_errors=True)
    if flags.json:
        print(json.dumps(bench.rows, indent=1))
        return
    for row in bench.rows:
        ratio = f"{row['ratio']:8.3f} of {row['of']}" if row["of"] else ""
        print(f"{row['name']:34} {row['value']:12.3f} {row['unit']:12} {ratio}")


if __name__ == "__main__":
    main()
