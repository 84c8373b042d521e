"""Jobs that work: ranks meet, PyTorch trains, logs are whole, arguments and environment arrive as given."""

import hashlib
import json
import re
import subprocess
import sys

from conftest import BIN, MUSTER, SOURCE, free_port


def test_eight_ranks_of_two_hosts_meet(cluster):
    code, job, live = cluster.run(*cluster.rank("rendezvous.py"), slots=4)
    assert code == 0 and job["world"] == 8
    for rank in range(8):
        assert live.count(f"[{rank}] rank {rank}/8 ") == 1
    assert all(n["clean"] for n in job["nodes"])


def test_pytorch_ddp_trains_over_both_hosts(cluster):
    code, job, live = cluster.run("--", sys.executable, SOURCE / "tests/e2e/ddp_train.py", timeout=120)
    assert code == 0, live
    ends = re.findall(r"\[(\d)\] rank (\d)/4 local (\d) first ([\d.]+) last ([\d.]+) sum ([-\d.]+)", live)
    assert sorted(e[0] for e in ends) == ["0", "1", "2", "3"]
    assert len({e[5] for e in ends}) == 1  # the replicas are equal
    assert float(ends[0][4]) < float(ends[0][3]) / 2
    assert job["state"] == "succeeded"


def test_log_files_hold_the_bytes_and_views_are_text(cluster):
    code, job, live = cluster.run(*cluster.rank("binary.py"), slots=1)
    assert code == 0
    for rank in range(2):
        data = cluster.log_file(job, rank).read_bytes()
        size, digest = re.search(r"binary: (\d+) bytes sha256 (\w+)", cluster.log_file(job, rank, "stderr").read_text()).groups()
        assert len(data) == int(size) and hashlib.sha256(data).hexdigest() == digest
        raw = subprocess.run([MUSTER, "logs", "last", "--rank", str(rank), "--stream", "out", "--raw"],
                             env=cluster.env, capture_output=True).stdout
        assert raw == data
        lines = [l for l in cluster.lines("last", "--rank", rank) if l["stream"] == "stdout"]
        text = b"\n".join(bytes.fromhex(l["hex"]) if "hex" in l else l["text"].encode() for l in lines)
        assert text == data
    assert "\\x00" in live and "\x00" not in live  # cluster.run has decoded it as strict UTF-8


def test_the_last_line_of_a_burst_arrives(cluster):
    code, job, _ = cluster.run(*cluster.rank("burst_exit.py", 100000, 0), slots=1)
    assert code == 0
    for rank in range(2):
        assert cluster.log_file(job, rank).read_bytes() == b"".join(b"line %07d\n" % i for i in range(100000))


def test_arguments_arrive_byte_for_byte(cluster):
    words = ["", " ", "a b", "it's", '"', "$HOME", "\\", "a\nb", "*", '{"a": [1, "x"]}', "--tp", "ä"]
    code, job, live = cluster.run(*cluster.rank("argv_json.py", *words), slots=1)
    assert code == 0
    argv = json.loads(cluster.log_file(job, 0).read_text())["argv"]
    assert argv == words


def test_templates(cluster):
    code, job, _ = cluster.run(*cluster.rank("argv_json.py", "{rank}/{world}"), slots=1)
    assert code == 0
    assert json.loads(cluster.log_file(job, 1).read_text())["argv"] == ["1/2"]


def test_the_environment_of_ranks(cluster):
    cluster.env["E2E_HERE"] = "yes"
    names = ["RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT",
             "TORCHELASTIC_RUN_ID", "ANSWER", "E2E_HERE"]
    code, job, _ = cluster.run("--env", "ANSWER=4 2", "--env", "E2E_HERE", *cluster.rank("env_json.py", *names))
    assert code == 0
    env = [json.loads(cluster.log_file(job, rank).read_text())["env"] for rank in range(4)]
    assert [e["RANK"] for e in env] == ["0", "1", "2", "3"]
    assert [e["LOCAL_RANK"] for e in env] == ["0", "1", "0", "1"]
    assert [e["GROUP_RANK"] for e in env] == ["0", "0", "1", "1"]
    assert {(e["WORLD_SIZE"], e["LOCAL_WORLD_SIZE"], e["MASTER_ADDR"], e["ANSWER"], e["E2E_HERE"]) for e in env} == {
        ("4", "2", "127.0.0.2", "4 2", "yes")}
    assert len({(e["MASTER_PORT"], e["TORCHELASTIC_RUN_ID"]) for e in env}) == 1


def test_ranks_get_no_stdin(cluster):
    code, _, live = cluster.run(*cluster.rank("read_stdin.sh"), slots=1, timeout=20)
    assert code == 0, live


def test_two_jobs_at_once_do_not_disturb_each_other(cluster):
    jobs = {}
    for host, code in (("127.0.0.2", 0), ("127.0.0.3", 9)):
        hosts = cluster.hostfile(slots=2, hosts=[host], name=f"hosts.{host}")
        jobs[code] = cluster.popen("submit", "--hostfile", hosts, "--json", *cluster.rank("exit.py", code, 1))
    for code, child in jobs.items():
        got, job, _ = cluster.finish(child, 30)
        assert got == code and job["world"] == 2


def test_direct_transport(cluster):
    """Daemons that listen, as `./dev demo` has them."""
    hosts = cluster.work / "hosts"
    hosts.write_text("")
    for host in cluster.HOSTS:
        port = free_port(host)
        daemon = subprocess.Popen([BIN / "musterd", "--name", host, "--listen", f"{host}:{port}"], env=cluster.env,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cluster.children.append(daemon)
        hosts.write_text(hosts.read_text() + f"{host} slots=2 transport=direct worker_port={port}\n")
    submit = cluster.popen("submit", "--hostfile", hosts, "--json", *cluster.rank("rendezvous.py"))
    code, job, live = cluster.finish(submit, 40)
    assert code == 0, live
    transports = {n["host"]: n["transport"] for n in cluster.json("nodes")["nodes"]}
    assert all(t.startswith("direct 127.0.0.") for t in transports.values())


def test_the_output_folder(cluster):
    code, job, _ = cluster.run("--name", "mine", *cluster.rank("exit.py", 0), slots=1)
    folder = cluster.work / "output"
    assert [f"{folder}/{p.name}" for p in folder.iterdir()] == [job["output_dir"]]
    assert job["output_dir"].endswith("_mine")
    names = {p.name for p in (folder / job["output_dir"]).iterdir()}
    assert {"job.toml", "plan.txt", "events.jsonl", "why.txt", "ranks"} <= names
    events = [json.loads(l) for l in (folder / job["output_dir"] / "events.jsonl").read_text().splitlines()]
    assert [e["sequence"] for e in events] == list(range(1, len(events) + 1))


def test_ps_says_what_a_queued_job_waits_for(cluster):
    for _ in range(2):
        cluster.muster("submit", "--hostfile", cluster.hostfile(), "--detach", *cluster.rank("step_log.sh", 1000))
    for words in (["ps"], ["ps", "2"]):
        row = next(line for line in cluster.muster(*words)[0].splitlines() if line.startswith("  2"))
        assert "queued" in row and row.endswith("waits for 127.0.0.2 (job 1)")
    cluster.muster("stop", "2", "--grace", "1s")
    cluster.muster("stop", "1", "--grace", "1s")
