"""The proof beyond processes, saving first, and what dead jobs have left."""

import os
import pathlib
import shutil
import signal
import time

from conftest import PYTHON, alive, wait_until

# A device whose used memory stands in a file.
TOOL = """#!/bin/sh
case "$1" in
  --query-gpu=index*) ;;
  --query-gpu=*) ;;
  *) exit 0 ;;
esac
used=$(cat {used})
for field in $(echo "${{1#--query-gpu=}}" | tr , ' '); do
  case $field in
    index) v=0 ;; name) v="Test GPU" ;; memory.total) v=81920 ;; memory.used) v=$used ;; uuid) v=GPU-1 ;; *) v="[N/A]" ;;
  esac
  line="${{line:+$line, }}$v"
done
echo "$line"
"""

SAVER = """import os, signal, sys, time
def save(*_):
    print("saving checkpoint", flush=True)
    time.sleep(0.3)
    print("saved checkpoint", flush=True)
    os._exit(int(sys.argv[1]) if os.environ["RANK"] == "1" else 75)
signal.signal(signal.SIGUSR1, save)
print("ready", flush=True)
time.sleep(300)
"""

RECIPE = """[job]
name = "saver"
command = ["{python}", "{script}", "{code}"]
save_signal = "USR1"
"""


def musterds(cluster):
    return [pid for pid in cluster.processes() if b"musterd" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]


def submit_saver(cluster, code):
    script = cluster.work / "saver.py"
    script.write_text(SAVER)
    recipe = cluster.work / "saver.toml"
    recipe.write_text(RECIPE.format(python=PYTHON, script=script, code=code))
    cluster.muster("submit", recipe, "--hostfile", cluster.hostfile(slots=1), "--detach")
    cluster.wait_state("running")
    cluster.wait_lines(2, "ready")


def test_a_stop_that_saves_first_is_a_success(cluster):
    submit_saver(cluster, 75)
    out, _ = cluster.muster("stop", "last", "--save")
    assert out.count("saved checkpoint") == 2 and out.count("  clean  ") == 2, out
    assert "ready" not in out
    job = cluster.job()
    assert (job["state"], job["cause"], job["code"]) == ("stopped", "stopped_by_user", 0)


def test_a_rank_that_did_not_save_is_named(cluster):
    submit_saver(cluster, 74)
    _, err = cluster.muster("stop", "last", "--save", code=130)
    assert "NOT every rank has saved: rank 1 exited with code 74" in err


def test_memory_that_stays_on_a_device_is_a_leftover(cluster):
    used = cluster.work / "used"
    used.write_text("10")
    tools = cluster.work / "tools"
    tools.mkdir()
    (tools / "nvidia-smi").write_text(TOOL.format(used=used))
    (tools / "nvidia-smi").chmod(0o755)
    cluster.env["PATH"] = f"{tools}:{cluster.env['PATH']}"
    hosts = cluster.hostfile(slots=1, hosts=["127.0.0.2"])
    cluster.muster("submit", "--hostfile", hosts, "--detach", *cluster.rank("step_log.sh", 1000))
    cluster.wait_state("running")
    used.write_text("40000")
    out, _ = cluster.muster("stop", "last", "--grace", "2s", code=124)
    assert "LEFTOVERS" in out and "device 0: 39.1 GiB in use by no process that can be seen" in out, out
    assert cluster.job()["cause"] == "leftovers"
    # It comes back a moment later: the end waits for that.
    used.write_text("10")
    cluster.muster("submit", "--hostfile", hosts, "--detach", *cluster.rank("step_log.sh", 1000))
    cluster.wait_state("running")
    used.write_text("40000")
    stop = cluster.popen("stop", "last", "--grace", "2s")
    time.sleep(0.5)
    used.write_text("10")
    out, _ = stop.communicate(timeout=30)
    assert stop.returncode == 0, out


def test_the_kernels_word_on_a_killed_rank(cluster):
    kmsg = cluster.work / "kmsg"
    kmsg.write_text("")
    cluster.env["MUSTER_KMSG"] = str(kmsg)
    submit = cluster.submit(*cluster.rank("step_log.sh", 1000), slots=1)
    cluster.wait_state("running")
    pid = next(r["pid"] for r in cluster.json("ps", "last")["ranks"] if r["rank"] == 1)
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    kmsg.write_text(f"3,9,{now},-;Out of memory: Killed process {pid} (sh) total-vm:1kB\n")
    os.kill(pid, signal.SIGKILL)
    assert cluster.finish(submit)[0] == 137
    why = cluster.json("why")
    # Both workers read the one fake log; only that of the failed rank's node was asked.
    assert [(k["host"], k["kind"], k["rank"]) for k in why["kernel"]] == [("127.0.0.3", "oom", 1)]
    assert why["hints"][0]["rule"] == "killed-for-memory"
    text = (pathlib.Path(why["output_dir"]) / "why.txt").read_text()
    assert f"Killed process {pid}" in text and "hint" in text


def test_a_users_own_rules_and_a_wrong_file(cluster):
    rules = cluster.work / "config/muster/rules"
    rules.mkdir(parents=True)
    cluster.env["XDG_CONFIG_HOME"] = str(cluster.work / "config")
    (rules / "a.toml").write_text("[[rule]]\nmatch = '('\ncause = 'x'\naction = 'stop'\n")
    (rules / "b.toml").write_text("[[rule]]\nname = 'ours'\nmatch = 'exit with code (\\d+)'\ncause = 'asked for {1}'\naction = 'retry'\n")
    code, job, _ = cluster.run(*cluster.rank("exit.py", 9), slots=1)
    why = cluster.json("why")
    assert why["remarks"] and f"{rules}/a.toml:2:9: match:" in why["remarks"][0]
    # A rule of the recipe is read at the submit, and its mistakes are errors there.
    recipe = cluster.work / "r.toml"
    recipe.write_text('[job]\ncommand = ["true"]\n[why]\nrules = ["config/muster/rules/a.toml"]\n')
    _, err = cluster.muster("submit", recipe, "--hostfile", cluster.hostfile(), code=2)
    assert "a.toml:2:9: match: missing closing parenthesis" in err


def test_a_stopped_shim_holds_up_no_stop(cluster):
    cluster.muster("submit", "--hostfile", cluster.hostfile(slots=1), "--detach", *cluster.rank("step_log.sh", 1000))
    cluster.wait_state("running")
    ranks = [r["pid"] for r in cluster.json("ps", "last")["ranks"]]
    shims = [int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid in ranks]
    for pid in shims:
        os.kill(pid, signal.SIGSTOP)
    out, _ = cluster.muster("stop", "last", "--grace", "20s")
    assert out.count("  clean  ") == 2 and "SIGKILL" not in out, out
    assert not any(map(alive, ranks + shims))


def test_cleanup_ends_what_a_lost_state_left_and_nothing_else(cluster):
    first = cluster.hostfile(slots=1, hosts=["127.0.0.2"], name="a")
    cluster.muster("submit", "--hostfile", first, "--detach", *cluster.rank("step_log.sh", 1000))
    cluster.wait_state("running")
    lost = cluster.json("ps", "last")["ranks"][0]["pid"]
    assert "clean" in cluster.muster("cleanup")[0] and alive(lost)
    # Controller and daemon are killed, and all that they knew is gone.
    for pid in [cluster.controller_pid(), *musterds(cluster)]:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not musterds(cluster), 10, "the daemon is gone")
    shutil.rmtree(cluster.state / "127.0.0.2")
    shutil.rmtree(cluster.state / "controller")
    assert alive(lost)
    # A job with the same command line runs on another host.
    second = cluster.hostfile(slots=1, hosts=["127.0.0.3"], name="b")
    cluster.muster("submit", "--hostfile", second, "--detach", *cluster.rank("step_log.sh", 1000))
    cluster.wait_state("running")
    runs = cluster.json("ps", "last")["ranks"][0]["pid"]
    both = ("cleanup", "--host", "127.0.0.2,127.0.0.3")
    found = {h["host"]: h for h in cluster.json(*both, "--dry-run", code=124)["hosts"]}
    dead = found["127.0.0.2"]["dead"]
    assert lost in {p["pid"] for p in dead} and len({p["attempt"] for p in dead}) == 1 and alive(lost)
    ended = [p for h in cluster.json(*both)["hosts"] for p in h["ended"]]
    assert lost in {p["pid"] for p in ended} and {p["attempt"] for p in ended} == {dead[0]["attempt"]}
    assert not alive(lost) and alive(runs)
    assert cluster.muster(*both)[0].count("clean") == 2
