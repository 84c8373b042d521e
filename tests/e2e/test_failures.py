"""Ranks that fail: the whole job ends, and the message says who, where and why."""

import os
import signal
import subprocess
import time

import pytest

from conftest import MUSTER, alive, wait_until


def pids(cluster, job="last"):
    ranks = cluster.json("ps", job)["ranks"]
    return {r["rank"]: r["pid"] for r in ranks}


def test_kill_9_of_a_rank_ends_all_of_them(cluster):
    submit = cluster.submit(*cluster.rank("step_log.sh", 1000, 0.1))
    job = cluster.wait_state("running")
    cluster.wait_lines(4, "step")
    ranks = pids(cluster)
    assert len(set(ranks.values())) == 4
    killed = time.monotonic()
    os.kill(ranks[2], signal.SIGKILL)
    # sh ends at SIGTERM at once: the grace really used is next to nothing.
    wait_until(lambda: not any(map(alive, ranks.values())), 2.0, "all ranks are gone")
    code, ended, _ = cluster.finish(submit)
    assert time.monotonic() - killed < 10
    assert code == 137
    assert ended["job"] == job["job"]
    assert (ended["rank"], ended["host"], ended["signal"]) == (2, "127.0.0.3", 9)
    assert ended["cause"] == "rank_failed" and ended["state"] == "failed"
    for text in ("rank 2", "127.0.0.3", "SIGKILL"):
        assert text in ended["message"]
    assert [n["clean"] for n in ended["nodes"]] == [True, True]


def test_kill_9_with_ranks_that_ignore_term_uses_the_grace(cluster):
    submit = cluster.submit("--grace", "1s", *cluster.rank("ignore_term.py"))
    cluster.wait_state("running")
    cluster.wait_lines(4, "")
    ranks = pids(cluster)
    os.kill(ranks[1], signal.SIGKILL)
    began = time.monotonic()
    wait_until(lambda: not any(map(alive, ranks.values())), 3.0, "all ranks are gone in grace + 2 s")
    assert time.monotonic() - began > 0.7
    code, ended, _ = cluster.finish(submit)
    assert code == 137 and ended["rank"] == 1 and ended["host"] == "127.0.0.2"


def test_plain_output_names_rank_host_and_signal(cluster):
    child = cluster.popen("submit", "--hostfile", cluster.hostfile(), *cluster.rank("selfkill.py", 11, 0.2))
    out, err = (b.decode() for b in child.communicate(timeout=60))
    assert child.returncode == 139, (out, err)
    assert "SIGSEGV" in err and "127.0.0." in err and "rank" in err
    assert "muster logs" in err


@pytest.mark.parametrize("rank,host", [(1, "127.0.0.2"), (3, "127.0.0.3")])
def test_exit_code_is_the_first_failing_ranks(cluster, rank, host):
    code, job, _ = cluster.run("--grace", "1s", *cluster.rank("exit.py", 77, 0.2, rank))
    assert code == 77
    assert (job["rank"], job["host"]) == (rank, host)


def test_failure_at_start_is_the_cause_and_its_traceback_is_there(cluster):
    code, job, live = cluster.run("--grace", "1s", *cluster.rank("fail_at_start.py", 3))
    assert code == 1
    assert (job["rank"], job["host"]) == (3, "127.0.0.3")
    assert "[3]! ImportError: libexample.so.12" in live


def test_error_file_is_the_message(cluster):
    code, job, _ = cluster.run("--grace", "1s", *cluster.rank("error_file.py", 0))
    assert code == 1
    assert "ValueError: loss is nan at step 17" in job["message"]


def test_last_lines_before_a_crash_are_kept(cluster):
    code, job, _ = cluster.run("--nproc-per-node", 1, *cluster.rank("burst_exit.py", 20000, 5))
    assert code == 5
    text = cluster.log_file(job, job["rank"]).read_bytes()
    assert text.endswith(b"line 0019999\n") and text.count(b"\n") == 20000


def test_end_of_output_is_not_the_end_of_a_rank(cluster):
    code, job, _ = cluster.run("--nnodes", 1, "--nproc-per-node", 1, *cluster.rank("close_stdout.py", 1))
    assert code == 3 and job["rank"] == 0


def test_what_all_hosts_lack_is_said_once(cluster):
    _, err = cluster.muster("submit", "--hostfile", cluster.hostfile(), "--", "no-such-program", code=120)
    assert err.count("no-such-program in PATH=") == 1
    assert "cause   program: 127.0.0.2, 127.0.0.3: " in err
    assert "\n            fix: install no-such-program on 127.0.0.2, 127.0.0.3, " in err
    assert "a script in the working folder is ./no-such-program" in err
    row = cluster.muster("ps")[0].splitlines()[1]
    assert "program: 127.0.0.2" in row and "fix" not in row and len(row) < 200


def test_the_folder_of_another_user_is_named(cluster):
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", MUSTER]
    if os.geteuid() != 0 or subprocess.run([*other, "--version"], capture_output=True, check=False).returncode != 0:
        pytest.skip("needs root, and programs that others may run")
    (cluster.state / "controller").mkdir(parents=True)
    cluster.state.chmod(0o700)
    done = subprocess.run([*other, "ps"], env=cluster.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert done.returncode != 0 and b"it is another user's" in done.stderr, done.stderr
