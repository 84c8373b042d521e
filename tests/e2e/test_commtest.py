"""muster-commtest over four network namespaces: right sums, a table, and the slow host named."""

import json
import re

import pytest

from conftest import BIN
from namespaces import Namespaces

HOSTS = 4
TRANSPORT = "command:ip netns exec {host}"
SMALL = ["--max-bytes", "32K", "--iters", "2", "--pair-bytes", "64K", "--pair-iters", "8"]
# A way that takes this long is told from a loaded machine's noise by far: the best of eight round trips counts.
DELAY_MS = 40


@pytest.fixture(scope="module")
def hosts():
    with Namespaces(HOSTS) as made:
        yield made


def machines(hosts, cluster, slots):
    return ["--hostfile", hosts.hostfile(cluster.work / "hosts", slots), "--transport", TRANSPORT]


def submit(hosts, cluster, *options, slots=1):
    command = [str(BIN / "muster-commtest"), *SMALL, *options]
    child = cluster.popen("submit", *machines(hosts, cluster, slots), "--json", "--", *command)
    code, job, live = cluster.finish(child, timeout=120)
    return code, live, cluster.log_file(job, 0).read_text() if code == 0 else ""


def test_sums_are_right_and_the_table_is_whole(hosts, cluster):
    code, live, text = submit(hosts, cluster, slots=2)
    assert code == 0, live
    assert text.startswith("# muster-commtest: 8 ranks on 4 hosts, gloo\n")
    sweeps = re.findall(r"^ +(\d+) +(\d+) +float +(sum|none) +([\d.]+) +([\d.]+) +([\d.]+) +(\d+)$", text, re.M)
    assert len(sweeps) == 5 * 5  # collectives, and 8 B to 32 KiB by a factor of 8
    assert all(row[-1] == "0" and float(row[3]) > 0 for row in sweeps)
    assert "# wrong elements: 0 OK" in text
    names = [hosts.name(k) for k in range(1, HOSTS + 1)]
    pairs = re.findall(r"^  (\S+) +(\S+) +([\d.]+) +([\d.]+) +([\d.]+) +0(?:  <<.*)?$", text, re.M)
    assert [p[:2] for p in pairs] == [(a, b) for i, a in enumerate(names) for b in names[i + 1:]]
    assert all(0 < float(p[2]) <= float(p[3]) for p in pairs)


def test_the_slow_host_is_the_one_that_is_named(hosts, cluster):
    hosts.run("delay", 3, DELAY_MS)
    try:
        code, live, text = submit(hosts, cluster, "--ops", "all_reduce", "--json")
    finally:
        hosts.run("heal", 3)
    assert code == 0, live
    report = json.loads(text)
    slow = hosts.name(3)
    # On a busy machine another pair may be late too, but not all pairs of another host.
    late = [p for p in report["pairs"] if "latency" in p["odd"] and slow in (p["a"], p["b"])]
    assert len(late) == HOSTS - 1
    assert all(p["latency_us"] >= DELAY_MS * 1000 for p in late)
    assert report["odd_hosts"] == [slow]
    assert report["usual"]["latency_us"] < DELAY_MS * 1000
    assert [c["wrong"] for c in report["collectives"]] == [0] * 5 and report["wrong_data"] == []


def test_check_deep_runs_it_after_the_other_checks(hosts, cluster):
    text, _ = cluster.muster("check", *machines(hosts, cluster, 1), "--deep", timeout=120)
    assert "4 hosts checked" in text and "# muster-commtest: 4 ranks on 4 hosts, gloo" in text
    assert "# wrong elements: 0 OK" in text and "# pairs" in text
    check = cluster.json("check", *machines(hosts, cluster, 1), "--deep", timeout=120)
    assert check["code"] == 0 and check["errors"] == 0
    assert check["deep"]["hosts_by_rank"] == [hosts.name(k) for k in range(1, HOSTS + 1)]
    assert len(check["deep"]["pairs"]) == 6 and check["deep"]["wrong_data"] == []


def test_a_rank_that_can_not_be_reached_is_an_error(hosts, cluster):
    hosts.run("cut", 2, 4)
    try:
        child = cluster.popen("submit", *machines(hosts, cluster, 1), "--skip", "network", "--json", "--",
                              str(BIN / "muster-commtest"), *SMALL, "--timeout", "4")
        code, job, live = cluster.finish(child, timeout=120)
    finally:
        hosts.run("heal", "all")
    assert code == 71, live
    assert "comm error" in live
