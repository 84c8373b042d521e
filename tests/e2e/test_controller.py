"""The controller: started once, killed and restarted without a job noticing, ended on request."""

import json
import os
import pathlib
import signal
import subprocess
import time

from conftest import MUSTER, alive, wait_until


def test_many_submits_at_once_start_one_controller(cluster):
    hosts = cluster.hostfile(slots=1)
    jobs = [cluster.popen("submit", "--hostfile", hosts, "--json", *cluster.rank("exit.py", 0)) for _ in range(5)]
    ids = {cluster.finish(job, 60)[1]["job"] for job in jobs}
    assert ids == {"1", "2", "3", "4", "5"}
    assert sum("muster serve" in line for line in cluster.unexpected().values()) == 1


def test_a_killed_controller_comes_back_and_nothing_is_lost(cluster):
    submit = cluster.submit(*cluster.rank("step_log.sh", 40, 0.1))
    cluster.wait_state("running")
    cluster.wait_lines(4, "step")
    ranks = [r["pid"] for r in cluster.json("ps", "last")["ranks"]]
    pid = cluster.controller_pid()
    os.kill(pid, signal.SIGKILL)
    time.sleep(0.5)
    assert all(map(alive, ranks))
    cluster.muster("serve", "--background")
    assert cluster.controller_pid() != pid
    assert pathlib.Path(f"/proc/{cluster.controller_pid()}/comm").read_text() == "muster\n"
    code, job, live = cluster.finish(submit, 60)
    assert code == 0 and job["state"] == "succeeded"
    for rank in range(4):
        lines = [l["text"] for l in cluster.lines("last", "--rank", rank) if l["stream"] == "stdout"]
        assert len(lines) == len(set(lines)) == cluster.log_file(job, rank).read_text().count("\n")
        # The viewer went on where it was: every line once.
        shown = [line[4:] for line in live.splitlines() if line.startswith(f"[{rank}] ")]
        assert shown == lines


def test_a_viewer_starts_a_killed_controller_again(cluster):
    submit = cluster.submit(*cluster.rank("step_log.sh", 80, 0.1))
    cluster.wait_state("running")
    os.kill(cluster.controller_pid(), signal.SIGKILL)
    code, job, _ = cluster.finish(submit, 60)
    assert code == 0 and len([n for n in job["nodes"] if n["clean"]]) == 2


def test_stop_works_after_the_controller_was_killed(cluster):
    cluster.muster("submit", "--hostfile", cluster.hostfile(), "--detach", *cluster.rank("step_log.sh", 1000))
    cluster.wait_state("running")
    ranks = [r["pid"] for r in cluster.json("ps", "last")["ranks"]]
    os.kill(cluster.controller_pid(), signal.SIGKILL)
    out, _ = cluster.muster("stop", "last", "--grace", "2s")
    assert out.count("clean") == 2
    assert not any(map(alive, ranks))


def test_after_serve_stop_the_controller_has_gone(cluster):
    for _ in range(5):
        code, _, live = cluster.run("--", "true", slots=1)
        assert code == 0, live
        pid = cluster.controller_pid()
        cluster.muster("serve", "--stop")
        cluster.muster("serve", "--background")
        assert cluster.controller_pid() != pid
    # Also after one that somebody else is ending.
    os.kill(cluster.controller_pid(), signal.SIGTERM)
    cluster.muster("serve", "--stop")
    assert "no controller runs" in cluster.muster("serve", "--stop")[1]


def test_serve_stop_is_refused_while_jobs_run_unless_forced(cluster):
    cluster.muster("submit", "--hostfile", cluster.hostfile(), "--detach", *cluster.rank("step_log.sh", 1000))
    cluster.wait_state("running")
    ranks = [r["pid"] for r in cluster.json("ps", "last")["ranks"]]
    _, err = cluster.muster("serve", "--stop", code=2)
    assert "job" in err
    cluster.muster("serve", "--stop", "--force")
    assert json.loads(cluster.muster("version", "--json")[0])["controller"] is None
    assert all(map(alive, ranks))
    assert cluster.wait_state("running")  # `ps` starts it again, and it takes the job up
    cluster.muster("stop", "last", "--grace", "2s")


def test_serve_in_the_foreground_refuses_a_second_one_and_ends_at_sigterm(cluster):
    serve = cluster.popen("serve")
    wait_until(lambda: cluster.json("version")["controller"], 10, "the controller answers")
    _, err = cluster.muster("serve", code=2)
    assert str(serve.pid) in err
    serve.send_signal(signal.SIGTERM)
    assert serve.wait(timeout=10) == 0


def test_nothing_is_started_to_say_that_there_is_nothing(cluster):
    assert cluster.json("ps")["jobs"] == []
    assert cluster.json("nodes")["nodes"] == []
    cluster.muster("logs", "1", code=2)
    cluster.muster("stop", "1", code=2)
    cluster.muster("stop", "--all")
    assert cluster.unexpected() == {}


def test_the_socket_is_for_this_user_only(cluster):
    cluster.muster("serve", "--background")
    socket = cluster.state / "controller" / "controller.sock"
    assert socket.stat().st_mode & 0o777 == 0o600
    assert socket.parent.stat().st_mode & 0o077 == 0


def test_version_and_help():
    for args in (["--version"], ["version"], ["--help"], ["help"], ["help", "submit"]):
        done = subprocess.run([MUSTER, *args], capture_output=True, text=True)
        assert done.returncode == 0 and "muster" in done.stdout
    help_text = subprocess.run([MUSTER, "--help"], capture_output=True, text=True).stdout
    commands = ["submit", "plan", "hosts", "ps", "logs", "stop", "nodes", "serve", "version", "completion"]
    for command in commands:
        assert command in help_text
        done = subprocess.run([MUSTER, command, "--help"], capture_output=True, text=True)
        assert done.returncode == 0
        assert "Examples:" in done.stdout and "Exit codes:" in done.stdout
        assert max(map(len, done.stdout.splitlines())) <= 100


def test_a_daemon_that_a_job_started_leaves_when_idle(cluster):
    cluster.run("--", "true")
    words = [pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") for pid in cluster.processes()]
    daemons = [line for line in words if line[0].endswith(b"musterd")]
    assert len(daemons) == 2 and all(b"600" in line and b"--idle-exit" in line for line in daemons), words
