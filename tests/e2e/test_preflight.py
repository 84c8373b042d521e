"""Preflight over network namespaces: each fault is named with its host and its fix, and nobody else is accused."""

import json
import subprocess
import sys

import pytest

from namespaces import Namespaces

HOSTS = 5

# Takes a host's name to its namespace: `dead` never answers, `alias` is host 2 again, host 4 has another data file.
WRAP = """#!/bin/sh
host=$1; shift
case $host in
dead) exec sleep 1000;;
alias) host={two};;
{four}) exec ip netns exec $host sh -c 'mount --bind {work}/other.bin {work}/data.bin && exec "$@"' sh "$@";;
esac
PATH={work}/tools/$host:$PATH; export PATH
exec ip netns exec $host "$@"
"""

LISTEN = """import socket, sys, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", int(sys.argv[1]))); s.listen(); print("ready", flush=True); time.sleep(600)
"""


@pytest.fixture(scope="module")
def hosts():
    with Namespaces(HOSTS) as made:
        yield made


class Checker:
    def __init__(self, hosts, cluster):
        self.hosts, self.cluster = hosts, cluster
        self.work = cluster.work
        (self.work / "data.bin").write_bytes(b"x" * 1000)
        (self.work / "other.bin").write_bytes(b"x" * 999 + b"y")  # the same size
        (self.work / "train.py").write_text("import sys\n")
        self.wrap = self.work / "wrap.sh"
        self.wrap.write_text(WRAP.format(two=hosts.name(2), four=hosts.name(4), work=self.work))
        self.wrap.chmod(0o755)

    def hostfile(self, extra=()):
        lines = [f"{self.hosts.name(k)} slots=1 addr={self.hosts.address(k)}" for k in range(1, HOSTS + 1)]
        path = self.work / "hosts"
        path.write_text("\n".join([*lines, *extra]) + "\n")
        return str(path)

    def check(self, *args, extra=(), code=120, json_output=True):
        command = args.index("--") if "--" in args else len(args)
        words = ["check", "--hostfile", self.hostfile(extra), "--transport", f"command:{self.wrap} {{host}}",
                 *args[:command], *(["--json"] if json_output else []), *args[command:]]
        out, _ = self.cluster.muster(*words, code=code)
        return json.loads(out) if json_output else out

    def findings(self, result, severity="error"):
        return {(f["check"], f["host"]) for f in result["findings"] if f["severity"] == severity}


@pytest.fixture
def checker(hosts, cluster):
    yield Checker(hosts, cluster)
    hosts.run("heal", "all")


def listen(hosts, k, port):
    child = subprocess.Popen(["ip", "netns", "exec", hosts.name(k), sys.executable, "-c", LISTEN, str(port)],
                             stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert child.stdout.readline() == b"ready\n"
    return child


def test_every_fault_is_named_and_nobody_else(checker):
    hosts = checker.hosts
    hosts.run("cut", 2, 5)
    second = f"{hosts.net}.9.2"
    subprocess.run(["ip", "-n", hosts.name(2), "addr", "add", f"{second}/16", "dev", "eth0"], check=True)
    extra = [f"alias slots=1 addr={second}", "dead slots=1 addr=10.255.255.1"]
    result = checker.check("--check-timeout", "4s", "--", sys.executable, "train.py", "--data", "data.bin",
                           extra=extra)
    assert result["cause"] == "preflight_failed" and result["code"] == 120 and result["hosts"] == 7
    name = hosts.name
    assert checker.findings(result) == {("connect", "dead"), ("machine", "alias"), ("network", name(2)),
                                        ("files", name(4))}, result["findings"]
    found = {f["check"]: f for f in result["findings"] if f["severity"] == "error"}
    assert "did not say hello within 4 s" in found["connect"]["value"]
    assert "--exclude dead" in found["connect"]["fix"]
    assert f"is the same machine as {name(2)}" in found["machine"]["value"]
    assert "remove one of the two lines" in found["machine"]["fix"]
    assert f"can't reach {name(5)} at {hosts.address(5)}" in found["network"]["value"]
    assert "ip route get" in found["network"]["fix"]
    assert "data.bin: 1000 bytes too, but other content" in found["files"]["value"]
    assert "copy the same file" in found["files"]["fix"]
    # Who answered is shown with what it has; the interface is the one on the way to the head.
    nodes = {n["host"]: n for n in result["nodes"]}
    assert not nodes["dead"]["answered"]
    assert {nodes[name(k)]["interface"] for k in range(1, HOSTS + 1)} == {"eth0"}
    assert all(nodes[name(k)]["python"] for k in range(1, HOSTS + 1))
    # Remembered for each node.
    shown = {n["host"]: n for n in checker.cluster.json("nodes")["nodes"]}
    assert [f["check"] for f in shown[name(4)]["checked"]["findings"]] == ["files"]
    assert shown[name(1)]["checked"]["findings"] == []


def test_device_tools_that_hang_or_talk_nonsense(checker):
    name = checker.hosts.name
    for k, script in ((2, "exec sleep 1000"), (3, "echo this is no nvidia-smi; echo at all")):
        tool = checker.work / "tools" / name(k) / "nvidia-smi"
        tool.parent.mkdir(parents=True)
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
    result = checker.check("--check-timeout", "4s", "--skip", "clock")
    assert checker.findings(result) == {("devices", name(2)), ("devices", name(3))}, result["findings"]
    found = {f["host"]: f for f in result["findings"] if f["severity"] == "error"}
    assert "no answer" in found[name(2)]["value"] and "hangs" in found[name(2)]["fix"]
    assert found[name(3)]["value"] == "its answer can't be read: 'this is no nvidia-smi'"


def test_healthy_hosts_pass_and_a_job_gets_their_interfaces(checker):
    hosts = checker.hosts
    result = checker.check(code=0)
    assert result["errors"] == 0 and checker.findings(result) == set()
    text = checker.check(code=0, json_output=False)
    assert text.startswith("5 hosts checked in ")
    table = checker.check("--verbose", code=0, json_output=False)
    assert "IFACE" in table and table.count("eth0") == HOSTS

    child = checker.cluster.popen("submit", "--hostfile", checker.hostfile(), "--transport",
                                  f"command:{checker.wrap} {{host}}", "--json",
                                  *checker.cluster.rank("env_json.py", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"))
    code, job, live = checker.cluster.finish(child)
    assert code == 0, live
    for rank in range(HOSTS):
        env = json.loads(checker.cluster.log_file(job, rank).read_text())["env"]
        assert (env["GLOO_SOCKET_IFNAME"], env["NCCL_SOCKET_IFNAME"]) == ("eth0", "=eth0")


@pytest.mark.parametrize("k", [1, 3])
def test_a_taken_port_names_host_and_holder(checker, k):
    port = 29511
    holder = listen(checker.hosts, k, port)
    try:
        result = checker.check("--port-range", f"{port}-{port}", "--check-timeout", "3s")
    finally:
        holder.kill()
        holder.wait()
    errors = [f for f in result["findings"] if f["severity"] == "error"]
    assert {f["host"] for f in errors} == {checker.hosts.name(k)}, errors
    assert {f["check"] for f in errors} == ({"network", "port"} if k == 1 else {"network"})
    for f in errors:
        assert f":{port} is in use by pid {holder.pid} (" in f["value"] and "--port-range" in f["fix"]
    # Within a wider range another port is found.
    holder = listen(checker.hosts, k, port)
    try:
        assert checker.check("--port-range", f"{port}-{port + 2}", code=0)["errors"] == 0
    finally:
        holder.kill()
        holder.wait()


def test_a_host_that_is_cut_off_from_all_is_the_odd_one(checker):
    checker.hosts.run("partition", 3)
    result = checker.check("--check-timeout", "3s")
    assert checker.findings(result) == {("network", checker.hosts.name(3))}, result["findings"]
    assert "is cut off on its data address" in result["findings"][0]["value"]
    checker.hosts.run("heal", 3)
    assert checker.check("--check-timeout", "3s", "--skip", "clock", code=0)["errors"] == 0


def test_wrong_words(checker):
    muster = checker.cluster.muster
    _, err = muster("check", "--hostfile", checker.hostfile(), "--skip", "netwrok", code=2)
    assert "there is no check 'netwrok'; did you mean 'network'?" in err
    for command in ("submit", "plan"):
        _, err = muster(command, "--hostfile", checker.hostfile(), "--skip", "prot", "--", "true", code=2)
        assert "did you mean 'port'?" in err
    _, err = muster("check", "--hostfile", checker.hostfile(), "--port-range", "9-8", code=2)
    assert "29500-29600" in err
    # A script that is a folder, on all hosts.
    result = checker.check("--", sys.executable, str(checker.work))
    assert {f["value"] for f in result["findings"] if f["severity"] == "error"} == {
        f"{checker.work} is a folder, not a file"}
    _, err = muster("check", "--hostfile", str(checker.work / "none"), code=2)
    assert "No such file" in err
