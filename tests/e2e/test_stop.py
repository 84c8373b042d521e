"""`muster stop` leaves nothing, whatever a rank does about it, and proves it."""

import re
import time

import pytest

from conftest import alive


def clean_lines(out):
    return [line for line in out.splitlines() if re.fullmatch(r"127\.0\.0\.[23]\s+clean\s+2 ranks ended, 0 left.*", line)]


@pytest.mark.parametrize(
    "program,ready",
    [
        ("ignore_term.py", ""),
        ("selfstop.py", ""),
        ("setsid_grandchild.py", ""),
        ("step_log.sh", "step"),
    ],
)
def test_nothing_is_left(cluster, program, ready):
    args = [1000] if program == "step_log.sh" else []
    cluster.muster("submit", "--hostfile", cluster.hostfile(), "--detach", *cluster.rank(program, *args))
    cluster.wait_state("running")
    cluster.wait_lines(4, ready)
    ranks = [r["pid"] for r in cluster.json("ps", "last")["ranks"]]
    began = time.monotonic()
    out, _ = cluster.muster("stop", "last", "--grace", "1s")
    assert time.monotonic() - began < 1 + 2 + 2
    assert len(clean_lines(out)) == 2, out
    assert not any(map(alive, ranks))
    job = cluster.job()
    assert (job["state"], job["cause"], job["code"]) == ("stopped", "stopped_by_user", 130)
    assert [line for line in cluster.unexpected().values() if "muster serve" not in line] == []


def test_a_stopped_rank_is_continued_so_that_it_can_end(cluster):
    cluster.muster("submit", "--hostfile", cluster.hostfile(), "--detach", *cluster.rank("selfstop.py"))
    cluster.wait_state("running")
    cluster.wait_lines(4, "")
    cluster.muster("stop", "last", "--grace", "10s")
    assert len([l for l in cluster.lines() if "got TERM" in l["text"]]) == 4
    assert not any(r.get("needed_sigkill") for r in cluster.json("ps", "last")["ranks"])


def test_sigkill_only_after_the_grace_and_said_so(cluster):
    cluster.muster("submit", "--hostfile", cluster.hostfile(), "--detach", *cluster.rank("ignore_term.py"))
    cluster.wait_state("running")
    cluster.wait_lines(4, "")
    began = time.monotonic()
    out, _ = cluster.muster("stop", "last", "--grace", "2s")
    assert 2.0 <= time.monotonic() - began < 5.0
    assert out.count("2 ranks needed SIGKILL") == 2


def test_a_daemon_of_a_rank_is_ended_with_the_job(cluster):
    code, job, _ = cluster.run(*cluster.rank("daemonize.py", 60), timeout=30)
    assert code == 0 and job["state"] == "succeeded"
    swept = [p for n in job["nodes"] for p in n["swept"]]
    assert len(swept) == 4
    assert not any(alive(p["pid"]) for p in swept)


def test_stop_ends_the_children_of_ranks(cluster):
    cluster.muster("submit", "--hostfile", cluster.hostfile(slots=1), "--detach", *cluster.rank("dataloader.py", 8))
    cluster.wait_state("running")
    lines = cluster.wait_lines(2, "children")
    children = [int(pid) for l in lines for pid in l["text"].split()[1:]]
    assert len(children) == 16
    cluster.muster("stop", "last", "--grace", "1s")
    assert not any(map(alive, children))


def test_stop_of_an_ended_job_says_so(cluster):
    cluster.run(*cluster.rank("exit.py", 0))
    _, err = cluster.muster("stop", "last")
    assert "had ended already: succeeded" in err


def test_stop_all_and_nothing_to_stop(cluster):
    _, err = cluster.muster("stop", "--all")
    assert "no active job" in err
    hosts = {"a": "127.0.0.2", "b": "127.0.0.3", "waits": "127.0.0.3"}
    for name, host in hosts.items():
        hostfile = cluster.hostfile(hosts=[host], name=f"hosts.{name}")
        cluster.muster("submit", "--hostfile", hostfile, "--detach", "--name", name, *cluster.rank("step_log.sh", 1000))
    cluster.wait_state("running", "a")
    cluster.wait_state("running", "b")
    assert cluster.job("waits")["state"] == "queued"
    jobs = cluster.json("stop", "--all", "--grace", "2s")["jobs"]
    assert sorted(j["name"] for j in jobs) == ["a", "b", "waits"]
    assert all(n["clean"] for j in jobs for n in j["nodes"])


def test_a_shorter_grace_shortens_a_stop(cluster):
    submit = cluster.submit("--grace", "120s", *cluster.rank("ignore_term.py"))
    cluster.wait_state("running")
    cluster.wait_lines(4, "")
    first = cluster.popen("stop", "last")
    cluster.wait_state("stopping")
    cluster.muster("stop", "last", "--grace", "0s", timeout=15)
    assert first.wait(timeout=15) == 0
    assert cluster.finish(submit)[0] == 130
