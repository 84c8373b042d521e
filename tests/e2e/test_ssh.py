"""The transport `ssh` against real sshds: for each kind of sshd, network, key and configuration a host of its own."""

import os
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

from conftest import wait_until
from namespaces import Namespaces

HOSTS = 11


def keygen(path, kind, passphrase=""):
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", path.name, "-f", path], check=True)
    return path


def fingerprint(path):
    return subprocess.run(["ssh-keygen", "-lf", path], check=True, capture_output=True, text=True).stdout.split()[1]


class Agent:
    """An ssh agent with `keys`."""

    def __init__(self, folder, keys):
        self.socket = folder / "agent"
        self.process = subprocess.Popen(["ssh-agent", "-D", "-a", self.socket], stdout=subprocess.DEVNULL)
        wait_until(self.socket.exists, what="the agent starts")
        subprocess.run(["ssh-add", "-q", *keys], check=True, env=os.environ | {"SSH_AUTH_SOCK": str(self.socket)},
                       stdin=subprocess.DEVNULL, timeout=30)

    def close(self):
        self.process.kill()
        self.process.wait()


class OddServers:
    """Listeners that are no sshd: {name: port}."""

    KINDS = {"silent": [], "drip": [b"S", b"S", b"H", b"-"] * 50, "stuck": [b"SSH-2.0-OpenSSH_9.2\r\n"], "closing": None}

    def __init__(self):
        self.ports = {}
        self.sockets = []
        for name, words in self.KINDS.items():
            listener = socket.create_server(("127.0.0.1", 0), backlog=64)
            self.sockets.append(listener)
            self.ports[name] = listener.getsockname()[1]
            threading.Thread(target=self.serve, args=(listener, words), daemon=True).start()

    def serve(self, listener, words):
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self.talk, args=(peer, words), daemon=True).start()

    @staticmethod
    def talk(peer, words):
        with peer:
            if words is None:
                return
            try:
                for word in words:
                    peer.sendall(word)
                    time.sleep(0.3)
                while peer.recv(4096):
                    pass
            except OSError:
                pass

    def close(self):
        for listener in self.sockets:
            listener.close()


class SshCluster(Namespaces):
    """Hosts with all that can be odd about sshd, and an ssh configuration that knows them."""

    def __enter__(self):
        super().__enter__()
        self.keys = self.folder / "keys"
        self.keys.mkdir()
        self.odd = OddServers()
        for name, kind in [("rsa", "rsa"), ("ecdsa", "ecdsa"), ("inagent", "ed25519"), ("hostrsa", "rsa"), ("other", "ed25519"),
                           *((f"many{i}", "ed25519") for i in range(9))]:
            keygen(self.keys / name, kind)
        keygen(self.keys / "locked", "ed25519", "secret")
        self.agent = Agent(self.keys, [*(self.keys / f"many{i}" for i in range(9)), self.keys / "inagent"])
        (self.keys / "inagent").unlink()  # from now on only the agent has it
        self.configure_hosts()
        self.write_configuration()
        self.restart_sshd()
        self.run("delay", 10, 300)
        self.run("delay", 11, 5, "5%")
        return self

    def __exit__(self, *unused):
        self.agent.close()
        self.odd.close()
        super().__exit__(*unused)

    def configure_hosts(self):
        home = self.folder / "home"
        home.mkdir()
        (home / ".cshrc").write_text("echo 'this line is on stdout'\necho -n 'no newline, and a MUSTER-BRIDGE '\n")
        (home / "banner").write_text("Authorized use only!\n")
        keys = self.keys
        kinds = {1: "AllowTcpForwarding no\nDisableForwarding yes\n",
                 2: f"AuthorizedKeysFile {keys}/rsa.pub\nForceCommand HOME={home} /bin/csh -c \"$SSH_ORIGINAL_COMMAND\"\n",
                 3: f"AuthorizedKeysFile {keys}/ecdsa.pub\nHostKey {keys}/hostrsa\nBanner {home}/banner\n"
                    "ForceCommand seq 1 5000; printf 'last login: never'; exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"\n",
                 4: "Port 2222\n", 6: f"AuthorizedKeysFile {keys}/inagent.pub\n", 8: "MaxStartups 3\n"}
        for k in range(1, HOSTS + 1):
            self.configure_sshd(k, f"SetEnv MUSTER_STATE={self.folder}/state\n" + kinds.get(k, ""))
        sshd = self.folder / "c/ssh/sshd.9.conf"
        sshd.write_text("Port 2201\nPort 2202\n" + sshd.read_text() +
                        "Match LocalPort 2201\n  PubkeyAuthentication no\n  PasswordAuthentication yes\n"
                        "Match LocalPort 2202\n  ForceCommand echo This account is closed.; exit 1\n")

    def stanza(self, alias, k=None, **settings):
        """`alias` is host k, reached in its own way."""
        if k:
            settings = {"HostName": self.address(k), "HostKeyAlias": self.name(k)} | settings
        self.lines += [f"Host {alias}", *(f"  {key} {value}" for key, value in settings.items())]

    def write_configuration(self):
        keys = self.keys
        known = self.folder / "known_hosts"
        lines = (self.folder / "c/ssh/known_hosts").read_text().splitlines()
        ed25519 = {k: lines[k - 1].split(" ", 1)[1] for k in range(1, HOSTS + 1)}
        rsa = (keys / "hostrsa.pub").read_text().rsplit(" ", 1)[0]
        lines[2] = f"{self.name(3)} {rsa}"
        lines[3] = f"[{self.address(4)}]:2222 {ed25519[4]}"
        lines[4] = f"{self.address6(5)} {ed25519[5]}"
        lines += [f"changed {(keys / 'other.pub').read_text().rsplit(' ', 1)[0]}", f"revoked {ed25519[1]}",
                  f"@revoked revoked {ed25519[1]}", f"@cert-authority authority {ed25519[2]}"]
        # Hashed, as ssh writes them on Debian; the odd ones stay in clear for the messages.
        known.write_text("\n".join(lines[:HOSTS]) + "\n")
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", known], check=True, capture_output=True)
        (self.folder / "odd_hosts").write_text("# not here\n" + "\n".join(lines[HOSTS:]) + "\n")

        self.lines = []
        self.stanza(self.name(1), 1, StrictHostKeyChecking="accept-new", UserKnownHostsFile=self.folder / "new/known_hosts")
        self.stanza(self.name(2), 2, IdentityFile=keys / "rsa")
        self.stanza(self.name(3), 3, IdentityFile=keys / "ecdsa")
        self.stanza(self.name(4), HostName=self.address(4))
        self.stanza(self.name(6), 6, IdentityAgent=self.agent.socket, IdentityFile=keys / "inagent")
        self.stanza(self.name(7), 7, ProxyJump=f"root@{self.address(8)}:22,{self.name(9)}")
        self.stanza(self.address(8), HostKeyAlias=self.name(8))
        for k in (8, 9, 10, 11):
            self.stanza(self.name(k), k)

        here = {"HostName": "127.0.0.1", "ConnectTimeout": 2}
        self.stanza("password", 9, Port=2201)
        self.stanza("closed", 9, Port=2202)
        self.stanza("changed", 9, HostKeyAlias="changed")
        self.stanza("revoked", 1, HostKeyAlias="revoked")
        self.stanza("authority", 9, HostKeyAlias="authority")
        self.stanza("unknown", 9, HostKeyAlias="unknown")
        self.stanza("locked", 9, IdentityFile=keys / "locked", IdentitiesOnly="yes", IdentityAgent="none")
        self.stanza("many", 6, IdentityAgent=self.agent.socket, IdentitiesOnly="no", IdentityFile="none")
        self.stanza("nokey", 9, IdentityFile=keys / "nothing", CertificateFile="~/.ssh/c-cert.pub")
        self.stanza("forbidden", 9, ProxyJump=self.name(1))
        self.stanza("behind", HostName=self.address(9), Port=9, ProxyJump=self.name(8))
        self.stanza("noport", HostName=self.address(9), Port=9)
        self.stanza("noname", HostName="no-such-host.invalid")
        self.stanza("proxied", ProxyCommand="echo this proxy is out of order >&2; exit 3")
        self.stanza("canonical", CanonicalizeHostname="yes")
        for name, port in self.odd.ports.items():
            self.stanza(name, Port=port, **here)
        # The others log in with the cluster's own key.
        own = ["locked", "many", "nokey", *(self.name(k) for k in (2, 3, 6))]
        base = f"""
Match originalhost *,{",".join("!" + name for name in own)}
  IdentityFile {self.folder}/c/ssh/id
Host *
  User root
  IdentityAgent none
  UserKnownHostsFile {known} {self.folder}/odd_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  HashKnownHosts no
  ConnectTimeout 20
"""
        self.config = self.folder / "config"
        self.config.write_text("\n".join(self.lines) + base)

    def address6(self, k):
        return f"fd00:{self.net[3:]}::{k:x}"


@pytest.fixture(scope="module")
def hosts():
    with SshCluster(HOSTS, ssh=True) as made:
        yield made


class Reach:
    """A test's controller with the transport `ssh` to the hosts."""

    def __init__(self, hosts, cluster):
        self.hosts, self.cluster = hosts, cluster
        self.words = f"-F {hosts.config}"

    def submit(self, lines, *args):
        hostfile = self.cluster.work / "hosts"
        hostfile.write_text("\n".join(lines) + "\n")
        command = args.index("--")
        return self.cluster.popen("submit", "--hostfile", hostfile, "--transport", f"ssh:{self.words}", *args[:command],
                                  "--json", *args[command:])

    def run(self, lines, *args, timeout=90):
        return self.cluster.finish(self.submit(lines, *args), timeout)

    def line(self, k):
        extra = {4: "port=2222", 5: ""}.get(k, "")
        name = self.hosts.address6(5) if k == 5 else self.hosts.name(k)
        return f"{name} slots=1 addr={self.hosts.address(k)} {extra}"


@pytest.fixture
def reach(hosts, cluster):
    return Reach(hosts, cluster)


def test_every_kind_of_host_takes_part(reach):
    kinds = [1, 2, 3, 4, 5, 6, 7, 10, 11]
    code, job, live = reach.run([reach.line(k) for k in kinds], "--check-timeout", "50s", "--", "sh", "-c", "echo I am $RANK")
    assert code == 0, live
    assert job["world"] == len(kinds)
    for rank in range(len(kinds)):
        assert reach.cluster.log_file(job, rank).read_text() == f"I am {rank}\n"
    nodes = reach.cluster.json("nodes")["nodes"]
    assert {n["transport"].split()[0] for n in nodes} == {"ssh"}
    assert [n["clean"] for n in job["nodes"]] == [True] * len(kinds)
    # The key of the first was new, and has been written down.
    assert (reach.hosts.folder / "new/known_hosts").read_text().startswith(f"{reach.hosts.name(1)} ssh-ed25519 ")


def test_each_refusal_says_why_and_what_helps(reach):
    hosts = reach.hosts
    ours = fingerprint(f"{hosts.folder}/c/ssh/hostkey.9.pub")
    expected = {
        "password": ["login as root", "refused: tried key", "the host takes password", "ssh-copy-id", "never asks for a password"],
        "changed": ["the host key of changed has changed", ours, fingerprint(hosts.keys / "other.pub"),
                    f"{hosts.folder}/odd_hosts:2", "ssh-keygen -R 'changed'"],
        "revoked": ["is marked as revoked in", f"{hosts.folder}/odd_hosts:4"],
        "authority": ["only an authority", "transport openssh"],
        "unknown": [ours, "of unknown is in none of its known_hosts", "accept-new"],
        "locked": ["there was no key to try", f"key {hosts.keys}/locked is encrypted", "ssh-add"],
        "many": ["more than its MaxAuthTries", "agent's key many0", "IdentityFile"],
        "nokey": ["nothing is not there", "not used by this transport: CertificateFile", "(openssh does)"],
        "forbidden": [f"through root@{hosts.address(1)}", "from there", "AllowTcpForwarding"],
        "behind": [f"through root@{hosts.address(8)}", "port 9 from there"],
        "closed": ["exited with 1 before the worker answered", "This account is closed."],
        "noport": [f"{hosts.address(9)} port 9: connection refused"],
        "noname": ["name no-such-host.invalid:"],
        "proxied": ["before its ssh banner came", "ProxyCommand says: this proxy is out of order"],
        "canonical": ["ssh configuration:", str(hosts.config), "CanonicalizeHostname", "transport openssh"],
        "silent": ["no ssh banner within 2 s"],
        "drip": ["no ssh banner within 2 s"],
        "stuck": ["no end of the key exchange within 2 s", "OpenSSH_9.2"],
        "closing": ["before its ssh banner came"],
    }
    code, job, live = reach.run([f"{name} slots=1" for name in expected], "--check-timeout", "20s", "--", "true")
    assert code == 120, live
    for name, words in expected.items():
        said = [line for line in live.splitlines() if re.search(rf"\b{name}\b", line)]
        for word in words:
            assert any(word in line for line in said), (name, word, live)
    assert "secret" not in live


def test_a_bastion_takes_them_one_after_another(reach):
    """More hosts than the bastion's MaxStartups come at once, under several names."""
    config = reach.cluster.work / "config"
    names = [f"behind{i}" for i in range(12)]
    lines = [f"Host {' '.join(names)}", f"  ProxyJump {reach.hosts.name(8)}", f"  HostName {reach.hosts.address(9)}",
             f"  HostKeyAlias {reach.hosts.name(9)}"]
    config.write_text("\n".join(lines) + "\n" + reach.hosts.config.read_text())
    reach.words = f"-F {config}"
    # One machine under twelve names is no cluster, but that is found only when all have been reached.
    _, _, live = reach.run([f"{name} slots=1" for name in names], "--check-timeout", "40s", "--", "true")
    # All have said hello: each of the eleven others is the same machine as the first.
    assert "connect:" not in live and re.search(r"machine: behind1, .*behind8 and 3 more", live), live
    nodes = {n["host"]: n for n in reach.cluster.json("nodes")["nodes"]}
    assert all(nodes[name]["state"] == "up" for name in names), (nodes, live)


def test_a_connection_that_is_reset_loses_neither_rank_nor_byte(reach):
    script = "for i in $(seq 1 60); do seq 1 500; echo tick $i $$; sleep 0.05; done"
    kinds = [1, 4, 7]
    child = reach.submit([reach.line(k) for k in kinds], "--name", "ticks", "--", "sh", "-c", script)
    reach.cluster.wait_state("running", "ticks", timeout=40)
    reach.cluster.wait_lines(len(kinds), "tick 2 ", "ticks", timeout=40)
    for k in kinds:
        for pid in reach.hosts.sessions(k):
            os.kill(pid, signal.SIGKILL)
    code, job, live = reach.cluster.finish(child)
    assert code == 0, live
    assert live.count("its ranks run on, dialling again") == len(kinds), live
    assert "connection lost" in live
    for rank in range(len(kinds)):
        text = reach.cluster.log_file(job, rank).read_text()
        ticks = [l.split() for l in text.splitlines() if l.startswith("tick")]
        assert [t[1] for t in ticks] == [str(i) for i in range(1, 61)]
        assert len({t[2] for t in ticks}) == 1 and text.count("\n") == 60 * 501


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_nothing_stays_when_the_controller_goes(reach, how):
    kinds = [1, 4, 7]
    code, _, live = reach.run([reach.line(k) for k in kinds], "--", "true")
    assert code == 0, live
    used = [1, 4, 7, 8, 9]  # with the hops
    assert all(reach.hosts.sessions(k) for k in used)
    if how == "stopped":
        reach.cluster.muster("serve", "--stop")
    else:
        os.kill(reach.cluster.controller_pid(), signal.SIGKILL)
    wait_until(lambda: not any(reach.hosts.sessions(k) for k in used), what="the connections end")
