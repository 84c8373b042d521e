"""Direct connections with mutual TLS: two network namespaces with a listening musterd each, certificates pushed over a
command transport; then whoever has no right to be there."""

import json
import os
import pathlib
import resource
import socket
import ssl
import subprocess
import time

import pytest

from conftest import BIN, MUSTER, wait_until
from namespaces import Namespaces

PORT = 7465
VIA = "command:ip netns exec {host}"


class Lab:
    """The hosts, their daemons, and an authority; all below the cluster's state folder."""

    def __init__(self, made, cluster):
        self.made, self.cluster = made, cluster
        self.daemons = {}
        self.hostfile = made.hostfile(cluster.work / "hosts", 2, lambda k: "transport=direct")

    def start(self, k, *more):
        log = open(self.log_path(k), "ab")
        child = subprocess.Popen(
            ["ip", "netns", "exec", self.made.name(k), str(BIN / "musterd"), "--name", self.made.name(k), "--listen",
             f"{self.made.address(k)}:{PORT}", *more], env=self.cluster.env, stderr=log, stdin=subprocess.DEVNULL)
        self.daemons[k] = child
        self.cluster.children.append(child)
        wait_until(lambda: "serves" in self.log(k), what="musterd listens")
        return child

    def log_path(self, k):
        return self.cluster.work / f"musterd.{k}.log"

    def log(self, k):
        return self.log_path(k).read_text()

    def cert(self, *args, code=0):
        return self.cluster.muster("cert", *args, code=code)

    def push(self, code=0):
        return self.cert("push", "--hostfile", self.hostfile, "--transport", VIA, code=code)

    def submit(self, *args):
        return self.cluster.finish(self.cluster.popen("submit", "--hostfile", self.hostfile, "--json", *args))

    def logged(self, k, text):
        """The log is written by another thread than the one that refuses."""
        wait_until(lambda: text in self.log(k), what=f"{text!r} in the log")

    def tls(self, k):
        return self.cluster.state / self.made.name(k) / "tls"

    def connect(self, k):
        return socket.create_connection((self.made.address(k), PORT), timeout=10)

    def handshake(self, k, identity=None):
        """A TLS client with these files, as anybody could write one: what it reads after its handshake."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        if identity:
            context.load_cert_chain(identity)
        with self.connect(k) as raw, context.wrap_socket(raw) as tls:
            assert tls.version() == "TLSv1.3"
            tls.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
            return tls.recv(4096)

    def refused(self, k, identity=None):
        try:
            data = self.handshake(k, identity)
        except (ssl.SSLError, ConnectionError) as error:
            return str(error)
        assert data[3:4] != b"\4", "HTTP/2 settings: it was let in"
        return data.decode(errors="replace")


@pytest.fixture(scope="module")
def made():
    with Namespaces(2) as namespaces:
        yield namespaces


@pytest.fixture
def lab(made, cluster):
    lab = Lab(made, cluster)
    lab.start(1)
    lab.start(2)
    return lab


@pytest.fixture
def ready(lab):
    lab.cert("init", "--name", "lab")
    lab.push()
    return lab


def serves(lab):
    code, job, live = lab.submit(*lab.cluster.rank("rendezvous.py"))
    assert code == 0, live
    assert job["world"] == 4
    return job


def test_keys_are_made_on_the_hosts_and_jobs_run(ready):
    serves(ready)
    nodes = ready.cluster.json("nodes")["nodes"]
    assert [n["transport"] for n in nodes] == [f"direct {ready.made.address(k)}:{PORT}" for k in (1, 2)]
    # The controller has certificates of the hosts, and no key of theirs.
    own = ready.cluster.state / "tls"
    for k in (1, 2):
        issued = (own / "issued" / f"{ready.made.name(k)}.pem").read_text()
        assert "CERTIFICATE" in issued and "PRIVATE" not in issued
        identity = (ready.tls(k) / "identity.pem").read_text()
        assert issued in identity and "PRIVATE" in identity
        assert (ready.tls(k) / "identity.pem").stat().st_mode & 0o777 == 0o600
        assert not (ready.tls(k) / "pending.key.pem").exists()
    listed = ready.cluster.json("cert", "list")
    assert [c["of"] for c in listed["certificates"]] == (
        ["authority lab", "controller"] + sorted(f"host {ready.made.name(k)}" for k in (1, 2)))
    assert not any(c["needs_care"] for c in listed["certificates"])


def test_arguments_and_environment_arrive_byte_for_byte(ready):
    words = ["", " ", "a b", "it's", '"', "$HOME", "`id`", "\\", "a\nb", "*", '{"a": [1, "x"]}', "-o", "--", "!x", "ä",
             os.fsdecode(b"\xff\xfe non-utf8"), "x" * 100_000]
    code, job, live = ready.submit(*ready.cluster.rank("argv_json.py", *words))
    assert code == 0, live
    for rank in range(4):
        seen = json.loads(ready.cluster.log_file(job, rank).read_text())
        assert [bytes.fromhex(h) for h in seen["hex"]] == [os.fsencode(w) for w in words]

    value = os.fsdecode(b"a=b 'c'\n\"d\" $HOME \xff")
    code, job, live = ready.submit("--env", f"ODD={value}", *ready.cluster.rank("env_json.py", "ODD", "MASTER_ADDR"))
    assert code == 0, live
    for rank in range(4):
        env = json.loads(ready.cluster.log_file(job, rank).read_text())["env"]
        assert env["ODD"] == value.encode("utf-8", "replace").decode()  # as the program prints it
        assert env["MASTER_ADDR"] == ready.made.address(1)
    code, job, live = ready.submit("--env", f"ODD={value}", "--", "sh", "-c", "printf %s \"$ODD\"")
    assert code == 0, live
    assert {ready.cluster.log_file(job, rank).read_bytes() for rank in range(4)} == {os.fsencode(value)}


def test_without_certificates_each_side_says_what_is_missing(lab):
    assert "no controller can connect yet" in lab.log(1) and "muster cert push" in lab.log(1)
    code, job, live = lab.submit("--", "true")
    assert code == 120 and "muster cert init" in live
    lab.cert("init")
    code, job, live = lab.submit("--", "true")
    assert code == 120 and "muster cert push" in live, live
    lab.logged(1, "refused a connection")
    lab.push()
    assert lab.submit("--", "true")[0] == 0  # no daemon was restarted


def test_rotation_while_a_job_runs(ready):
    child = ready.cluster.popen("submit", "--hostfile", ready.hostfile, "--json", "--", "sleep", "600")
    ready.cluster.wait_state("running")
    before = {k: (ready.tls(k) / "identity.pem").read_bytes() for k in (1, 2)}
    ready.cert("rotate", "--hostfile", ready.hostfile)
    for k in (1, 2):
        assert (ready.tls(k) / "identity.pem").read_bytes() != before[k]
    ready.cert("rotate", "--ca", "--hostfile", ready.hostfile, ready.made.name(1), code=120)
    assert ready.cluster.json("cert", "list")["rotating"]
    out, err = ready.cert("rotate", "--finish", code=2)
    assert ready.made.name(2) in err
    ready.cert("rotate", "--hostfile", ready.hostfile)  # both, and now the controller too
    trust = (ready.tls(1) / "trust.pem").read_text()
    assert trust.count("BEGIN CERTIFICATE") == 2
    ready.cert("rotate", "--finish", "--hostfile", ready.hostfile)
    assert (ready.tls(1) / "trust.pem").read_text().count("BEGIN CERTIFICATE") == 1
    assert not ready.cluster.json("cert", "list")["rotating"]
    # A new controller process connects anew with what is there now, and the job is its again.
    ready.cluster.muster("serve", "--stop", "--force")
    ready.cluster.muster("serve", "--background")
    wait_until(lambda: all(n["state"] == "up" for n in ready.cluster.json("nodes")["nodes"]), what="nodes are up")
    ready.cluster.muster("stop", "last")
    code, job, _ = ready.cluster.finish(child)
    assert code == 130 and all(n["clean"] for n in job["nodes"])


def make_expired(lab, folder):
    """A controller's certificate of our own authority that ended two days ago."""
    key, request, out = (folder / n for n in ("key.pem", "request.pem", "expired.pem"))
    ca = lab.cluster.state / "tls/ca.pem"
    (folder / "index").write_text("")
    (folder / "serial").write_text("77\n")
    (folder / "conf").write_text(
        f"[ca]\ndefault_ca=d\n[d]\ndatabase={folder}/index\nserial={folder}/serial\nnew_certs_dir={folder}\n"
        f"certificate={ca}\nprivate_key={ca}\ndefault_md=sha256\npolicy=p\nx509_extensions=e\n"
        "[p]\ncommonName=supplied\n[e]\nextendedKeyUsage=clientAuth\n"
        "subjectAltName=URI:muster://lab/@controller\nsubjectKeyIdentifier=hash\n"
        "authorityKeyIdentifier=keyid:always\n")
    when = lambda days: time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() - days * 86400 - 3600))
    run = lambda *words: subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
    run("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", request,
        "-subj", "/CN=the controller")
    run("ca", "-batch", "-config", folder / "conf", "-in", request, "-out", out, "-notext", "-startdate", when(9),
        "-enddate", when(2))
    out.write_text(key.read_text() + out.read_text())
    return out


def test_who_has_no_right_is_refused_and_logged(ready, tmp_path):
    assert "certificate required" in ready.refused(1)
    ready.logged(1, "it showed no certificate")

    env = ready.cluster.env | {"MUSTER_STATE": str(tmp_path)}
    subprocess.run([MUSTER, "cert", "init", "--name", "lab"], env=env, check=True, capture_output=True)
    assert "unknown ca" in ready.refused(1, tmp_path / "tls/identity.pem")
    ready.logged(1, "not signed by an authority that we trust")

    assert "is for host" in ready.refused(1, ready.tls(2) / "identity.pem")
    ready.logged(1, f"is for host {ready.made.name(2)} of authority 'lab', not for the controller")

    said = ready.refused(1, make_expired(ready, tmp_path))
    assert "expired" in said and "2 days ago" in said
    ready.logged(1, "the certificate of the controller expired")

    with ready.connect(1) as plain:
        plain.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        plain.settimeout(10)
        try:
            while plain.recv(4096):
                pass
        except ConnectionError:
            pass
    ready.logged(1, "it does not speak TLS")
    # The controller's own is let in by the same client.
    assert ready.handshake(1, ready.cluster.state / "tls/identity.pem")[3:4] == b"\4"
    serves(ready)


def test_two_thousand_silent_connections_keep_nobody_out(ready):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4096:
        pytest.skip("too few descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    silent = []
    try:
        for _ in range(2000):
            silent.append(ready.connect(1))
        serves(ready)
    finally:
        for one in silent:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert "made room for a new one" in ready.log(1)
    assert ready.log(1).count("refused a connection") < 200  # the log is not flooded
    assert ready.daemons[1].poll() is None
    held = len(os.listdir(f"/proc/{ready.daemons[1].pid}/fd"))
    assert held < 400
    serves(ready)


def test_another_host_at_the_address_is_not_taken_for_it(ready):
    text = pathlib.Path(ready.hostfile).read_text()
    a, b = (ready.made.address(k) for k in (1, 2))
    swapped = text.replace(a, "X").replace(b, a).replace("X", b)
    pathlib.Path(ready.hostfile).write_text(swapped)
    code, job, live = ready.submit("--", "true")
    assert code == 120
    assert f"is for host {ready.made.name(2)} of authority 'lab', not for host {ready.made.name(1)}" in live


def test_wrong_input_names_place_and_fix(lab):
    out, err = lab.cert("pusch", code=2)
    assert "did you mean 'push'" in err
    out, err = lab.cert("push", "--hostfile", lab.hostfile, code=2)
    assert "muster cert init" in err
    lab.cert("init")
    out, err = lab.cert("init", code=2)
    assert "muster cert rotate --ca" in err
    out, err = lab.cert("push", "--hostfile", lab.hostfile, "nosuch", code=2)
    assert "'nosuch' is not in the hostfile" in err
    out, err = lab.cert("push", "127.0.0.9", "--remote-dir", "/tmp/../etc", "--transport", "local", code=120)
    assert "without . or .." in err
    (lab.cluster.state / "tls/identity.pem").chmod(0o644)
    code, job, live = lab.submit("--", "true")
    assert code == 120 and "chmod 600" in live
