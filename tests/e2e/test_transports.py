"""Hosts behind the user's ssh and behind any command: four network namespaces, each with its own kind of sshd."""

import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

from conftest import BIN, alive, processes_with, wait_until
from namespaces import Namespaces

HOSTS = 4
COMMAND = "command:ip netns exec {host}"


@pytest.fixture(scope="module")
def hosts():
    """Host 1 forbids forwarding, 2 has csh and a noisy rc file, 3 a banner and noise without a newline, 4 another port."""
    with Namespaces(HOSTS, ssh=True) as made:
        state = made.folder / "state"
        home = made.folder / "home"
        home.mkdir()
        (home / ".cshrc").write_text("echo 'this line is on stdout'\n" + "echo " + "x" * 900 + "\n" * 2 +
                                     "echo -n 'no newline, and a MUSTER-BRIDGE '\n")
        (home / "banner").write_text("Authorized use only!\n")
        shell = f"ForceCommand HOME={home} /bin/csh -c \"$SSH_ORIGINAL_COMMAND\"\n"
        noise = "ForceCommand seq 1 5000; printf 'last login: never'; exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"\n"
        kinds = {1: "AllowTcpForwarding no\nDisableForwarding yes\n", 2: shell, 3: f"Banner {home}/banner\n" + noise,
                 4: "Port 2222\n"}
        for k, text in kinds.items():
            made.configure_sshd(k, f"SetEnv MUSTER_STATE={state}\n" + text)
        known = made.folder / "c/ssh/known_hosts"
        made.restart_sshd()
        line = next(l for l in known.read_text().splitlines() if l.startswith(made.name(4) + ","))
        known.write_text(known.read_text() + f"[{made.address(4)}]:2222 {line.split(' ', 1)[1]}\n")
        yield made


class Reach:
    """A way to the hosts: the words for muster submit."""

    def __init__(self, hosts, cluster, kind):
        self.hosts, self.cluster, self.kind = hosts, cluster, kind
        self.transports = [f"openssh:-F {hosts.ssh_config}", COMMAND, f"ssh:-F {hosts.ssh_config}"]
        if kind != "mixed":
            self.transports = [t for t in self.transports if t.split(":")[0] == kind]

    def options(self, k):
        port = "port=2222" if k == 4 and self.kind != "command" else ""
        if self.kind == "mixed" and k % 2:
            return "transport=command" if k == 1 else "transport=ssh"
        return port

    def submit(self, *args, slots=1):
        hostfile = self.hosts.hostfile(self.cluster.work / "hosts", slots, self.options)
        command = args.index("--") if "--" in args else len(args)
        transports = [word for t in self.transports for word in ("--transport", t)]
        return self.cluster.popen("submit", "--hostfile", hostfile, *transports, *args[:command], "--json",
                                  *args[command:])

    def run(self, *args, **kwargs):
        """(exit code, the job's JSON, live output)."""
        child = self.submit(*args, **kwargs)
        out, err = child.communicate(timeout=60)
        return child.returncode, json.loads(out), err.decode("utf-8", "replace")

    def carriers(self):
        """Pids of the programs that carry connections of this test's controller."""
        controller = self.cluster.controller_pid()
        children = pathlib.Path(f"/proc/{controller}/task")
        pids = {int(p) for task in children.iterdir() for p in (task / "children").read_text().split()}
        return [p for p in pids if alive(p)]

    def bridges(self):
        """Bridges on the hosts: {pid: host}."""
        found = {}
        for k in range(1, HOSTS + 1):
            for pid in self.hosts.pids(k):
                try:
                    words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if b"bridge" in words and words[0].endswith(b"musterd"):
                    found[pid] = k
        return found


@pytest.fixture(params=["openssh", "command", "ssh"])
def reach(hosts, cluster, request):
    return Reach(hosts, cluster, request.param)


@pytest.fixture
def ssh(hosts, cluster):
    return Reach(hosts, cluster, "openssh")


def test_ranks_of_four_hosts_meet_and_stop(reach):
    code, job, live = reach.run(*reach.cluster.rank("rendezvous.py"), slots=2)
    assert code == 0, live
    assert job["world"] == 8 and len(re.findall(r"^\[\d+\] .*barrier ok", live, re.M)) == 8
    assert [n["clean"] for n in job["nodes"]] == [True] * HOSTS
    nodes = reach.cluster.json("nodes")["nodes"]
    assert {n["transport"] for n in nodes} == {f"{reach.kind} {reach.hosts.name(k)}" for k in range(1, HOSTS + 1)}

    child = reach.submit("--grace", "300ms", *reach.cluster.rank("ignore_term.py"), slots=2)
    reach.cluster.wait_lines(8, "ignor")
    pids = {k: reach.hosts.pids(k) for k in range(1, HOSTS + 1)}
    reach.cluster.muster("stop", "last")
    code, job, _ = reach.cluster.finish(child)
    assert code == 130
    assert [(n["clean"], n["survivors"]) for n in job["nodes"]] == [(True, [])] * HOSTS
    for k, before in pids.items():
        for pid in set(before) & set(reach.hosts.pids(k)):
            name = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
            assert not name.startswith("python") and name != "muster-shim", (k, pid, name)


def test_arguments_and_environment_arrive_byte_for_byte(reach):
    words = ["", " ", "a b", "it's", '"', "$HOME", "`id`", "\\", "a\nb", "*", '{"a": [1, "x"]}', "-o", "--", "!x", "ä",
             os.fsdecode(b"\xff\xfe non-utf8"), "x" * 100_000]
    code, job, live = reach.run(*reach.cluster.rank("argv_json.py", *words))
    assert code == 0, live
    for rank in range(HOSTS):
        seen = json.loads(reach.cluster.log_file(job, rank).read_text())
        assert [bytes.fromhex(h) for h in seen["hex"]] == [os.fsencode(w) for w in words]

    value = os.fsdecode(b"a=b 'c'\n\"d\" $HOME \xff")
    code, job, live = reach.run("--env", f"ODD={value}", *reach.cluster.rank("env_json.py", "ODD", "MASTER_ADDR"))
    assert code == 0, live
    for rank in range(HOSTS):
        env = json.loads(reach.cluster.log_file(job, rank).read_text())["env"]
        assert env["ODD"] == value.encode("utf-8", "replace").decode()  # as the program prints it
        assert env["MASTER_ADDR"] == reach.hosts.address(1)
    code, job, live = reach.run("--env", f"ODD={value}", "--", "sh", "-c", "printf %s \"$ODD\"")
    assert code == 0, live
    assert {reach.cluster.log_file(job, rank).read_bytes() for rank in range(HOSTS)} == {os.fsencode(value)}


def test_transports_of_one_hostfile(hosts, cluster):
    code, job, live = Reach(hosts, cluster, "mixed").run(*cluster.rank("rendezvous.py"))
    assert code == 0 and len(re.findall(r"^\[\d+\] .*barrier ok", live, re.M)) == HOSTS, live
    nodes = {n["host"]: n["transport"] for n in cluster.json("nodes")["nodes"]}
    assert [nodes[hosts.name(k)].split()[0] for k in range(1, 5)] == ["command", "openssh", "ssh", "openssh"]


def test_a_killed_ssh_loses_neither_rank_nor_byte(ssh):
    script = "for i in $(seq 1 60); do seq 1 500; echo tick $i $$; sleep 0.05; done"
    assert ssh.run("--", "true")[0] == 0  # starts the controller
    child = ssh.submit("--name", "ticks", "--", "sh", "-c", script)
    ssh.cluster.wait_state("running", "ticks")
    ssh.cluster.wait_lines(HOSTS, "tick 2 ", "ticks")
    before = ssh.carriers()
    assert len(before) == HOSTS
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: len(set(ssh.carriers()) - set(before)) == HOSTS, what="the hosts are dialled again")
    code, job, live = ssh.cluster.finish(child)
    assert code == 0, live
    assert live.count("its ranks run on, dialling again") == HOSTS
    assert "was ended by signal 9" in live
    for rank in range(HOSTS):
        text = ssh.cluster.log_file(job, rank).read_text()
        ticks = [l.split() for l in text.splitlines() if l.startswith("tick")]
        assert [t[1] for t in ticks] == [str(i) for i in range(1, 61)]
        assert len({t[2] for t in ticks}) == 1  # one process all along
        assert text.count("\n") == 60 * 501


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_nothing_stays_when_the_controller_goes(reach, how):
    code, _, live = reach.run("--", "true")
    assert code == 0, live
    carriers = reach.carriers()
    assert len(carriers) == (0 if reach.kind == "ssh" else HOSTS)  # ssh is in the controller
    assert len(reach.bridges()) == HOSTS
    if how == "stopped":
        reach.cluster.muster("serve", "--stop")
    else:
        os.kill(reach.cluster.controller_pid(), signal.SIGKILL)
    wait_until(lambda: not any(map(alive, carriers)), what="the programs end")
    wait_until(lambda: not reach.bridges(), what="the bridges end")


def refused(reach, *args):
    """The text with which a job is refused before anything starts."""
    code, job, live = reach.run(*args, "--", "true")
    assert code == 120 and job["state"] == "failed", live
    return job["message"] if "message" in job else live


def test_what_is_wrong_is_said_at_once(hosts, cluster):
    reach = Reach(hosts, cluster, "command")
    reach.transports[0] = "command:no-such-ssh {host}"
    assert "start no-such-ssh: No such file or directory" in refused(reach)

    reach.transports[0] = "command:ip netns exec {host} sh -c 'echo MUSTER-BRIDGE protocol=999 version=9.9; sleep 60' x"
    assert "musterd 9.9 there speaks protocol 999" in refused(reach)


def test_ssh_never_asks(ssh):
    wrong = ssh.cluster.work / "other_key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", wrong], check=True)
    text = ssh.hosts.ssh_config.read_text().replace(str(ssh.hosts.folder / "c/ssh/id"), str(wrong))
    (ssh.cluster.work / "config").write_text(text)
    ssh.transports[0] = f"openssh:-F {ssh.cluster.work}/config"
    text = refused(ssh)
    assert "Permission denied" in text and "ssh-copy-id" in text

    empty = ssh.cluster.work / "known"
    empty.write_text("")
    ssh.transports[0] = f"openssh:-F {ssh.hosts.ssh_config} -o UserKnownHostsFile={empty}"
    text = refused(ssh)
    assert "Host key verification failed" in text and "known_hosts" in text


def test_a_daemon_of_a_bridge_leaves_when_idle(cluster):
    command = [BIN / "musterd", "bridge", "--name", "n1", "--idle-exit", "1"]
    with subprocess.Popen(command, env=cluster.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as bridge:
        assert bridge.stdout.readline() == b"\n"
        assert bridge.stdout.readline().startswith(b"MUSTER-BRIDGE protocol=")
        # The process that put the daemon into the background may still be ending.
        daemons = []
        wait_until(lambda: daemons.clear() or daemons.extend(set(processes_with(str(cluster.state))) - {bridge.pid})
                   or len(daemons) == 1, 10, "one daemon")
        bridge.stdin.close()
        assert bridge.wait(timeout=30) == 0
    wait_until(lambda: not alive(daemons[0]), 30, "the daemon ends")


def test_a_daemon_of_another_network_namespace_is_not_taken(hosts, cluster):
    code, _, live = Reach(hosts, cluster, "command").run("--", "true")
    assert code == 0, live
    done = subprocess.run([BIN / "musterd", "bridge", "--name", hosts.name(1)], env=cluster.env, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=30)
    assert done.returncode == 2 and b"lives in another network namespace" in done.stderr
