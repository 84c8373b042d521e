"""CPU time of everything that a bench starts, also of what others start for it (sshd's sessions, daemons)."""

import os
import pathlib
import time


class CpuMeter:
    """A cgroup2 of its own for this process and all that come from it. Without one, `seconds` is None."""

    def __init__(self):
        self.group = self.parent = None
        for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
            fields, _, kind = line.partition(" - ")
            if kind.startswith("cgroup2 "):
                own = next(text[3:] for text in pathlib.Path("/proc/self/cgroup").read_text().splitlines()
                           if text.startswith("0::"))
                self.parent = pathlib.Path(fields.split()[4] + own)

    def __enter__(self):
        if self.parent:
            group = self.parent / f"muster-bench-{os.getpid()}"
            try:
                group.mkdir()
                (group / "cgroup.procs").write_text(str(os.getpid()))
                self.group = group
            except OSError:
                group.exists() and group.rmdir()
        return self

    def __exit__(self, *unused):
        if not self.group:
            return
        (self.parent / "cgroup.procs").write_text(str(os.getpid()))
        for _ in range(100):
            try:
                self.group.rmdir()
                return
            except OSError:  # what was ended is still going
                time.sleep(0.1)

    def seconds(self):
        if not self.group:
            return None
        usage = dict(line.split() for line in (self.group / "cpu.stat").read_text().splitlines())
        return int(usage["usage_usec"]) / 1e6
