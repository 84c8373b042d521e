#!@PROJECT_SOURCE_DIR@/.venv/bin/python
"""Stages a tree to hosts that are network namespaces of this machine, each with a worker daemon of its own.

usage: muster_stage_bench [--hosts N] [--mib N] [--json]      (as root)
Figures: what the controller sent beside the tree, the time beside a plain copy of the same bytes on this disk, a host killed
in the middle, a corrupted file.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path("@PROJECT_SOURCE_DIR@")
sys.path.insert(0, str(SOURCE / "tests/e2e"))
from namespaces import Namespaces  # noqa: E402

MUSTER = str(pathlib.Path(__file__).resolve().parent / "muster")


def make_tree(folder, mib):
    folder.mkdir()
    for i in range(8):
        with open(folder / f"lib{i}.so", "wb") as file:
            for _ in range(mib * (1 << 20) // 8 >> 16):
                file.write(os.urandom(1 << 16))
    for i in range(500):
        (folder / f"m{i}.py").write_text(f"x = {i}\n" * 40)


class Bench:
    def __init__(self, hosts, folder):
        self.hosts, self.folder = hosts, folder
        self.state = folder / "state"
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("MUSTER_")} | {"MUSTER_STATE": str(self.state)}
        self.hostfile = hosts.hostfile(folder / "hosts")

    def popen(self, *words):
        return subprocess.Popen([MUSTER, *map(str, words)], env=self.env, cwd=self.folder, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)

    def stage(self, *words, code=0):
        child = self.popen("stage", *words, "--hostfile", self.hostfile, "--transport", "command:ip netns exec {host}", "--json")
        return self.finish(child, code)

    def finish(self, child, code=0):
        out, err = child.communicate(timeout=900)
        assert child.returncode == code, (child.returncode, out[:2000], err)
        return json.loads(out)

    def kill_in_the_middle(self, tree, name, half):
        """Stages while one host's worker and its staging process are killed, when it has `half` bytes."""
        child = self.popen("stage", tree, "--hostfile", self.hostfile, "--transport", "command:ip netns exec {host}", "--json")
        state = self.state / name
        while sum(p.stat().st_blocks * 512 for p in state.glob("stage/*.partial/*")) < half:
            assert child.poll() is None, "it was over before it could be killed"
            time.sleep(0.002)
        daemon = int((state / "lock").read_text().split()[0])
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                words = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
                if words[1:3] == [b"--stage", os.fsencode(state)]:
                    os.kill(int(entry), signal.SIGKILL)
            except OSError:
                continue
        os.kill(daemon, signal.SIGKILL)
        return self.finish(child)

    def close(self):
        subprocess.run([MUSTER, "serve", "--stop", "--force"], env=self.env, capture_output=True, timeout=60)
        for entry in os.listdir("/proc"):
            if entry.isdigit() and int(entry) != os.getpid():
                try:
                    if os.fsencode(self.state) in pathlib.Path(f"/proc/{entry}/environ").read_bytes():
                        os.kill(int(entry), signal.SIGKILL)
                except OSError:
                    continue


def copy_seconds(tree, folder, times):
    begin = time.monotonic()
    for i in range(times):
        shutil.copytree(tree, folder / f"copy{i}")
    os.sync()
    seconds = time.monotonic() - begin
    for i in range(times):
        shutil.rmtree(folder / f"copy{i}")
    return seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", type=int, default=32)
    parser.add_argument("--mib", type=int, default=300)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []

    def row(name, value, unit, ratio=None, of="", better="lower"):
        rows.append({"name": name, "value": round(value, 3), "unit": unit, "ratio": ratio and round(ratio, 3), "of": of,
                     "better": better})
        if not options.json:
            print(f"{name:52} {value:10.2f} {unit:6} " + (f"{ratio:.2f} x {of}" if ratio else ""), flush=True)

    with Namespaces(options.hosts) as hosts, tempfile.TemporaryDirectory(prefix="msb-", dir="/var/tmp") as name:
        folder = pathlib.Path(name)
        bench = Bench(hosts, folder)
        try:
            tree = folder / "tree"
            make_tree(tree, options.mib)
            measured = min(options.hosts, 8)
            copies = copy_seconds(tree, folder, measured) * options.hosts / measured
            end = bench.stage(tree)
            assert all(h["state"] == "done" and not h["through_controller"] for h in end["hosts"])
            row("sent by the controller", end["bytes_sent"] / (1 << 20), "MiB", end["bytes_sent"] / end["bytes"], "the tree")
            row(f"time to {options.hosts} hosts, worker starts included", end["seconds"], "s", end["seconds"] / copies,
                f"{options.hosts} plain copies on this disk ({measured} measured), synced")
            row("arrived on all hosts", options.hosts * end["bytes"] / 1e6 / end["seconds"], "MB/s", better="higher")
            again = bench.stage(tree)
            row("again, nothing changed", again["seconds"], "s")
            assert again["bytes_sent"] == 0

            victim = pathlib.Path(end["hosts"][options.hosts // 2]["path"]) / "lib3.so"
            with open(victim, "r+b") as file:
                file.seek(victim.stat().st_size // 2)
                byte = file.read(1)
                file.seek(-1, 1)
                file.write(bytes([byte[0] ^ 1]))
            found = bench.stage(tree, "--verify", "--dry-run", code=120)
            damaged = [(h["host"], h["damaged"]) for h in found["hosts"] if h["damaged"]]
            assert damaged == [(end["hosts"][options.hosts // 2]["host"], ["lib3.so: other content"])], damaged
            row("all hosts verified, one corrupted file found", found["seconds"], "s")
            mended = bench.stage(tree, "--verify")
            assert sum(h["bytes_fetched"] for h in mended["hosts"]) <= 1 << 19
            bench.stage(tree, "--verify", "--dry-run")

            bench.stage("--prune")
            shutil.rmtree(tree)
            make_tree(tree, options.mib)
            killed = hosts.name(options.hosts // 2)
            end = bench.kill_in_the_middle(tree, killed, options.mib << 19)
            host = next(h for h in end["hosts"] if h["host"] == killed)
            assert all(h["state"] == "done" for h in end["hosts"])
            row("a host killed in the middle: it had already", host["bytes_had"] / (1 << 20), "MiB", better="higher")
            row("... and fetched after its return", host["bytes_fetched"] / (1 << 20), "MiB")
            row("... and the controller sent", end["bytes_sent"] / (1 << 20), "MiB", end["bytes_sent"] / end["bytes"], "the tree")
        finally:
            bench.close()
    if options.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
