#!/usr/bin/env python3
"""How fast a job ends: 64 workers of this machine as 64 nodes with 2 ranks each.

`./dev bench stop [--json]`. Times are taken here, by looking at the ranks' processes every few ms, and compared with what
the product promises (of: "limit").
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(os.environ.get("MUSTER_BIN", pathlib.Path(__file__).resolve().parent))
MUSTER = str(BIN / "muster")
NODES, SLOTS = 64, 2
FAILING = 77

# A rank that waits, and one that fails when it is told to.
RANK = """#!/bin/sh
[ "$1" = deaf ] && trap '' TERM
echo in
if [ "$RANK" = "$2" ]; then
  while [ ! -e "$3" ]; do sleep 0.01; done
  date +%s.%N > "$3.failed"
  exit 3
fi
while :; do sleep 1; done
"""


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


class Bench:
    def __init__(self, work):
        self.work = work
        self.env = dict(os.environ, MUSTER_STATE=str(work / "s"))
        self.hosts = work / "hosts"
        self.hosts.write_text("".join(f"127.0.1.{k} slots={SLOTS}\n" for k in range(1, NODES + 1)))
        self.rank = work / "rank.sh"
        self.rank.write_text(RANK)
        self.rows = []

    def muster(self, *args, check=True):
        return subprocess.run([MUSTER, *map(str, args)], env=self.env, cwd=self.work, check=check, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True)

    def start(self, *words):
        """Pids of all ranks, once they run."""
        self.muster("submit", "--hostfile", self.hosts, "--check-timeout", "120s", "--detach", "--grace", "20s", "--", "sh",
                    self.rank, *words)
        while True:
            job = json.loads(self.muster("ps", "last", "--json").stdout)
            if job["state"] == "running":
                return [r["pid"] for r in job["ranks"]]
            if job["state"] == "failed":
                sys.exit(f"the job failed: {job['message']}")
            time.sleep(0.2)

    def wait_gone(self, pids):
        left = pids
        while left := [pid for pid in left if alive(pid)]:
            time.sleep(0.005)
        return time.time()

    def add(self, name, value, limit):
        self.rows.append({"name": name, "value": round(value, 3), "unit": "s", "ratio": round(value / limit, 3),
                          "of": f"limit of {limit:g} s", "better": "lower"})

    def failure(self):
        trigger = self.work / "fail"
        pids = self.start("hears", FAILING, trigger)
        trigger.write_text("")
        gone = self.wait_gone(pids)
        failed = float((self.work / "fail.failed").read_text())
        self.add("failure_to_last_rank_gone", gone - failed, 2)
        while (job := json.loads(self.muster("ps", "last", "--json").stdout))["state"] != "failed":
            time.sleep(0.05)
        if (job["rank"], job["code"]) != (FAILING, 3):
            sys.exit(f"wrong cause: {job['message']}")
        self.add("failure_to_verified_end", job["ended_ns"] / 1e9 - failed, 3)
        began = time.time()
        self.muster("why", "last", "--json")
        self.add("why", time.time() - began, 1)

    def stop(self, kind, grace, name):
        pids = self.start(kind, -1, "-")
        time.sleep(1)
        began = time.time()
        stop = subprocess.Popen([MUSTER, "stop", "last", "--grace", f"{grace}s"], env=self.env,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        gone = self.wait_gone(pids)
        if stop.wait() != 0:
            sys.exit("the stop was not clean")
        self.add(f"{name}_last_rank_gone", gone - began, grace + 2)
        self.add(f"{name}_returns_after_last_rank", time.time() - gone, 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    flags = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="msb-", dir="/tmp"))
    bench = Bench(work)
    try:
        bench.failure()
        bench.stop("hears", 0, "stop")
        bench.stop("deaf", 2, "stop_of_ranks_that_ignore_term")
    finally:
        bench.muster("stop", "--all", "--grace", "0s", check=False)
        bench.muster("serve", "--stop", "--force", check=False)
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                mine = os.fsencode(str(work)) in pathlib.Path(f"/proc/{entry}/environ").read_bytes()
            except OSError:
                continue
            if mine and int(entry) != os.getpid():
                os.kill(int(entry), 9)
        shutil.rmtree(work, ignore_errors=True)
    if flags.json:
        print(json.dumps(bench.rows))
    else:
        for row in bench.rows:
            print(f"{row['name']:<48} {row['value']:>8.3f} {row['unit']}  {row['ratio']:.2f} of the {row['of']}")


if __name__ == "__main__":
    main()
