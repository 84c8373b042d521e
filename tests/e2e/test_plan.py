"""muster plan and muster hosts as a user runs them: selection, allocations, comparison, one rank, and the script,
which really runs."""

import json
import os
import re
import signal
import subprocess
import time

import pytest

from conftest import MUSTER, PYTHON, SOURCE, alive, free_port, processes_with, wait_until

TWO_NODES = str(SOURCE / "recipes/two_nodes_16_gpus.toml")
TWO_HOSTS = str(SOURCE / "hostfiles/two_nodes_16_gpus")


def muster(*args, code=0, env=None, cwd=None):
    base = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "PBS_", "LSB_"))}
    done = subprocess.run([MUSTER, *map(str, args)], env=base | (env or {}), cwd=cwd, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=60)
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == code, f"exit code {done.returncode}\n--- stdout\n{out}\n--- stderr\n{err}"
    return out, err


def plan_json(*args, **kwargs):
    return json.loads(muster("plan", "--json", *args, **kwargs)[0])


# Selection


def test_include_and_exclude_choose_ranks(tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("root@a slots=4\nb slots=4\nc slots=2\n")
    plan = plan_json("--hostfile", hosts, "--include", "root@a:1,3@c", "--", "true")
    assert [(r["host"], r["device"]) for r in plan["ranks"]] == [("a", 1), ("a", 3), ("c", None), ("c", None)]
    plan = plan_json("--hostfile", hosts, "--exclude", "a@b:0", "--", "true")
    assert [(n["host"], n["num_ranks"]) for n in plan["nodes"]] == [("b", 3), ("c", 2)]
    listed = json.loads(muster("hosts", "--hostfile", hosts, "--exclude", "a", "--json")[0])["hosts"]
    assert [h["host"] for h in listed] == ["b", "c"]


@pytest.mark.parametrize("args,texts", [
    (["--include", "bb"], ["--include bb", "'bb'", "did you mean 'b'"]),
    (["--include", "b:7"], ["b has no device 7", "hosts:2", "0-3"]),
    (["--include", "b", "--exclude", "a"], ["--include", "--exclude"]),
    (["--exclude", "a@b"], ["no host", "left"]),
    (["--include", ""], ["--include", "empty"]),
    (["--exclude", ""], ["--exclude", "empty"]),
    (["--host", "n1:3"], ["--hostfile and --host", "both are given"]),
])
def test_wrong_selections(tmp_path, args, texts):
    (tmp_path / "hosts").write_text("a slots=4\nb slots=4\n")
    _, err = muster("plan", "--hostfile", "hosts", *args, "--", "true", code=2, cwd=tmp_path)
    for text in texts:
        assert text in err


def test_a_hostfile_that_is_a_named_pipe_is_refused_and_the_shells_pipe_is_read(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    _, err = muster("hosts", "--hostfile", tmp_path / "fifo", code=2)
    assert "named pipe" in err
    _, err = muster("hosts", "--hostfile", "auto", code=2, env={"PBS_NODEFILE": str(tmp_path / "fifo")})
    assert "named pipe" in err
    shell = f"{MUSTER} hosts --hostfile <(sleep 0.3; echo a slots=2) --json"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, timeout=60)
    assert json.loads(done.stdout)["hosts"][0]["slots"] == 2


def test_hostfile_auto_reads_the_allocation(tmp_path):
    slurm = {"SLURM_JOB_NODELIST": "gpu[01-02],x1", "SLURM_TASKS_PER_NODE": "8(x2),4"}
    plan = plan_json("--hostfile", "auto", "--", "true", env=slurm)
    assert [(n["host"], n["num_ranks"]) for n in plan["nodes"]] == [("gpu01", 8), ("gpu02", 8), ("x1", 4)]
    nodes = tmp_path / "nodes"
    nodes.write_text("n1\nn1\nn2\n")
    for env in ({"PBS_NODEFILE": str(nodes)}, {"LSB_HOSTS": "n1 n1 n2"}, {"LSB_MCPU_HOSTS": "n1 2 n2 1"}):
        listed = json.loads(muster("hosts", "--hostfile", "auto", "--json", env=env)[0])["hosts"]
        assert [(h["host"], h["slots"]) for h in listed] == [("n1", 2), ("n2", 1)]


def test_hostfile_auto_outside_of_an_allocation_is_an_error():
    for command in (["plan", "--hostfile", "auto", "--", "true"], ["hosts", "--hostfile", "auto"]):
        _, err = muster(*command, code=2)
        assert "allocation" in err and "SLURM_JOB_NODELIST" in err and "--hostfile FILE" in err


# What is shown


def test_the_worked_example():
    out, _ = muster("plan", TWO_NODES, "--hostfile", TWO_HOSTS)
    assert "16 GPUs / (TP 1 x PP 2 x CP 1) = DP 8; GBS = MBS 1 x 128 x DP 8 = 1024" in out
    assert "8.03 B parameters" in out
    plan = plan_json(TWO_NODES, "--hostfile", TWO_HOSTS, "--device-memory", "80GiB")
    assert plan["fits"] is True
    assert plan["groups"]["pp"]["crossing_hosts"] == 8
    assert plan["groups"]["dp"]["groups"] == [list(range(8)), list(range(8, 16))]
    for stage in plan["stages"]:
        parts = {k: v for k, v in stage["memory"].items() if k != "total"}
        assert abs(sum(parts.values()) - stage["memory"]["total"]) <= len(parts)


def test_compare_lists_layouts_that_plan_takes():
    rows = json.loads(muster("plan", TWO_NODES, "--hostfile", TWO_HOSTS, "--compare", "--json")[0])["layouts"]
    assert sum(r["current"] for r in rows) == 1
    assert {(1, 1), (1, 2)} <= {(r["tp"], r["pp"]) for r in rows}
    for row in rows[:: max(1, len(rows) // 5)]:
        sizes = [x for k in ("tp", "pp", "cp", "vp") for x in (f"--{k}", row[k])]
        plan = plan_json(TWO_NODES, "--hostfile", TWO_HOSTS, *sizes, "--global-batch", row["global_batch"])
        assert (plan["dp"], plan["num_microbatches"]) == (row["dp"], row["num_microbatches"])
        assert max(s["memory"]["total"] for s in plan["stages"]) == row["memory"]
    text, _ = muster("plan", TWO_NODES, "--hostfile", TWO_HOSTS, "--compare", "--top", 3)
    assert text.startswith(f"{len(rows)} layouts of 16 ranks")
    assert re.search(r"^> +1 +2 +1 +1 +8 ", text, re.M)  # the job's own, wherever it stands


def test_what_does_not_fit_is_refused_with_what_would(tmp_path):
    recipe = SOURCE / "recipes/llama3_70b.toml"
    args = [recipe, "--host", "g[1-8]:8", "--device-memory", "80GiB"]
    out, err = muster("plan", *args, "--tp", 1, "--vp", 1, code=2)
    assert "DOES NOT FIT" in out
    assert "what would fit, best first" in err
    first = next(line for line in err.splitlines() if line.strip().startswith("--tp")).split("(")[0].split()
    muster("plan", *args, "--vp", 1, *first)  # the advice, typed in


def test_one_rank_and_secrets(tmp_path):
    recipe = tmp_path / "job.toml"
    recipe.write_text('[job]\ncommand = ["echo", "{rank}", "a b"]\n[secrets]\nTOKEN = { env = "TOKEN" }\n')
    env = {"TOKEN": "hunter2hunter2"}
    args = ["plan", recipe, "--host", "a:2,b:2", "--rank", 3]
    out, _ = muster(*args, env=env)
    assert "rank     3 of 4" in out and "command  echo 3 'a b'" in out and "env      RANK=3" in out
    assert "hunter2" not in out and "TOKEN=****" in out
    answer = json.loads(muster(*args, "--json", env=env)[0])
    assert answer["env"]["TOKEN"] == "****" and answer["argv"] == ["echo", "3", "a b"]
    _, err = muster("plan", recipe, "--host", "a:2", "--rank", 2, code=2, env=env)
    assert "rank 2 is not in a plan of 2 ranks" in err


def test_constants_of_ones_own(tmp_path):
    slow = tmp_path / "slow.toml"
    slow.write_text('[device]\nname = "half an H200"\nfp8_tflops = 600\n')
    args = ["plan", TWO_NODES, "--hostfile", TWO_HOSTS]
    fast = plan_json(*args[1:])["forecast"]["tokens_per_second"]
    assert plan_json(*args[1:], "--constants", slow)["forecast"]["tokens_per_second"] < fast
    assert "half an H200" in muster(*args, "--constants", slow)[0]
    slow.write_text("[device]\nfp8_tflop = 600\n")
    _, err = muster(*args, "--constants", slow, code=2)
    assert f"{slow}:2:1" in err and "fp8_tflops" in err


def test_short_data_is_warned_about(tmp_path):
    (tmp_path / "d.idx").write_bytes(b"MMIDIDX\0\0" + (1).to_bytes(8, "little") + b"\x04" + bytes(16))
    (tmp_path / "d.bin").write_bytes(bytes(4 * 100))
    out, _ = muster("plan", SOURCE / "recipes/tiny_cpu.toml", "--host", "a:4", "--flag", "data-path=d", cwd=tmp_path)
    assert "data too short: d has 100 tokens, one sample takes 128 + 1" in out


# The script


RANK = r"""
import json, os, sys
names = ["RANK", "LOCAL_RANK", "WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT", "MUSTER_PP_RANK", "JSON", "TOKEN"]
print(json.dumps({"argv": sys.argv[1:], "env": {n: os.environ.get(n) for n in names}}), flush=True)
"""


def write_script(tmp_path, *args, env=None):
    out, _ = muster("plan", "--script", *args, cwd=tmp_path, env=env)
    path = tmp_path / "job.sh"
    path.write_text(out)
    return path


def run_script(path, env=None, timeout=60):
    return subprocess.run(["bash", str(path)], env=os.environ | {"LOCAL": "1"} | (env or {}), capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=timeout, text=True)


def test_script_runs_all_ranks_with_their_environment_and_argv(tmp_path):
    (tmp_path / "rank.py").write_text(RANK)
    recipe = tmp_path / "job.toml"
    odd = ["a b", "it's", '{"x": "y"}', "$HOME `id` \\", "", "{rank}", "two\nlines", "\nEND_OF_NODE\n"]
    recipe.write_text(f"[job]\ncommand = {json.dumps([PYTHON, 'rank.py', *odd])}\n"
                      '[parallel]\npp = 2\n[env]\nJSON = \'{"a": "b c"}\'\n[secrets]\nTOKEN = { env = "TOKEN" }\n')
    port = free_port()
    path = write_script(tmp_path, recipe, "--host", "a:2,b:1,c:1", "--master-port", port, env={"TOKEN": "s3cret s3cret"})
    assert "s3cret" not in path.read_text()
    done = run_script(path, env={"TOKEN": "s3cret s3cret"})
    assert done.returncode == 0, done.stderr
    answers = {}
    for line in done.stdout.splitlines():
        rank, text = re.fullmatch(r"\[(\d+)\] (.*)", line).groups()
        answers[int(rank)] = json.loads(text)
    assert sorted(answers) == [0, 1, 2, 3]
    for rank, answer in answers.items():
        assert answer["argv"] == [str(rank) if word == "{rank}" else word for word in odd]
        assert answer["env"] == {
            "RANK": str(rank), "LOCAL_RANK": str([0, 1, 0, 0][rank]), "WORLD_SIZE": "4",
            "GROUP_RANK": str([0, 0, 1, 2][rank]), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
            "MUSTER_PP_RANK": str(rank // 2), "JSON": '{"a": "b c"}', "TOKEN": "s3cret s3cret"}


def test_script_and_other_transports(tmp_path):
    (tmp_path / "hosts").write_text("a slots=1\nb slots=1 transport=direct\n")
    head = write_script(tmp_path, "--hostfile", "hosts", "--", "true").read_text().split("set -uo")[0]
    assert "#   b: transport direct" in head and "#   a:" not in head
    _, err = muster("plan", "--script", "--host", "a:1", "--transport", "command:kubectl exec -i {host} --", "--",
                    "true", code=2)
    assert "--script goes by ssh" in err and "--transport openssh" in err


def test_script_asks_for_its_secrets(tmp_path):
    recipe = tmp_path / "job.toml"
    recipe.write_text('[job]\ncommand = ["true"]\n[secrets]\nTOKEN = { env = "TOKEN" }\n')
    path = write_script(tmp_path, recipe, "--host", "a:1", env={"TOKEN": "s3cret s3cret"})
    env = {k: v for k, v in os.environ.items() if k != "TOKEN"} | {"LOCAL": "1"}
    done = subprocess.run(["bash", str(path)], env=env, capture_output=True, text=True, timeout=30)
    assert done.returncode != 0 and "set TOKEN" in done.stderr


def test_script_gives_the_first_failure_and_ends_the_others(tmp_path):
    mark = f"plan-script-{os.getpid()}-{time.monotonic_ns()}"
    body = f'test "$RANK" = 2 && exit 7; exec sleep 600 # {mark}'
    path = write_script(tmp_path, "--host", "a:2,b:2", "--env", f"MARK={mark}", "--", "sh", "-c", body)
    done = run_script(path)
    assert done.returncode == 7, done.stderr
    wait_until(lambda: not processes_with(mark), what="ranks gone")


def test_script_ends_its_ranks_on_ctrl_c(tmp_path):
    mark = f"plan-script-{os.getpid()}-{time.monotonic_ns()}"
    path = write_script(tmp_path, "--host", "a:1,b:1", "--env", f"MARK={mark}", "--", "sh", "-c",
                        "echo up; exec sleep 600")
    child = subprocess.Popen(["bash", str(path)], env=os.environ | {"LOCAL": "1"}, stdout=subprocess.PIPE,
                             stdin=subprocess.DEVNULL, text=True)
    assert sorted(child.stdout.readline() for _ in range(2)) == ["[0] up\n", "[1] up\n"]
    child.send_signal(signal.SIGTERM)
    assert child.wait(timeout=30) == 130
    wait_until(lambda: not processes_with(mark), what="ranks gone")
    assert not alive(child.pid)


def test_script_shows_the_last_lines_of_the_rank_that_fails(tmp_path):
    path = write_script(tmp_path, "--host", "a:1", "--", "bash", "-c",
                        "for i in $(seq 5); do echo line $i; done; echo FATAL; exit 3")
    for _ in range(8):
        done = run_script(path)
        assert done.returncode == 3, done.stderr
        assert done.stdout.splitlines() == [*(f"[0] line {i}" for i in range(1, 6)), "[0] FATAL"]


# Ends at SIGTERM, after it has said so and saved; rank 1 fails once rank 0 is ready for that.
SAVES = r"""
import os, pathlib, signal, sys, time
def save(*_):
    print("saving", flush=True)
    pathlib.Path("saved").write_text("all of it")
    print("saved", flush=True)
    sys.exit(0)
if os.environ["RANK"] == "0":
    signal.signal(signal.SIGTERM, save)
    pathlib.Path("ready").touch()
    time.sleep(600)
while not os.path.exists("ready"):
    time.sleep(0.05)
sys.exit(7)
"""

# What ssh is to the script: it can end without the far side noticing anything but the end of its stdin.
FAKE_SSH = """#!/bin/bash
while [ "$1" != -- ]; do shift; done
shift 2
setsid "$@" <&0 &
wait $!
"""


def fake_ssh(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ssh").write_text(FAKE_SSH)
    (tmp_path / "bin/ssh").chmod(0o755)
    return {"LOCAL": "", "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}


@pytest.mark.parametrize("hosts", ["a:2", "a:1,b:1"])
def test_script_lets_ranks_save_and_print_at_the_end(tmp_path, hosts):
    (tmp_path / "rank.py").write_text(SAVES)
    path = write_script(tmp_path, "--host", hosts, "--", PYTHON, "rank.py")
    done = run_script(path, env=fake_ssh(tmp_path))
    assert done.returncode == 7, done.stderr
    assert done.stdout.splitlines() == ["[0] saving", "[0] saved"]
    assert (tmp_path / "saved").read_text() == "all of it"


def test_script_ends_the_ranks_of_other_hosts_however_it_ends(tmp_path):
    env = fake_ssh(tmp_path)
    for send in (signal.SIGTERM, signal.SIGKILL):
        mark = f"plan-script-{os.getpid()}-{time.monotonic_ns()}"
        path = write_script(tmp_path, "--host", "a:1,b:1", "--env", f"MARK={mark}", "--", "sh", "-c",
                            "echo up; exec sleep 600")
        child = subprocess.Popen(["bash", str(path)], env=os.environ | env, stdout=subprocess.PIPE,
                                 stdin=subprocess.DEVNULL, text=True)
        assert sorted(child.stdout.readline() for _ in range(2)) == ["[0] up\n", "[1] up\n"]
        child.send_signal(send)
        assert child.wait(timeout=30) == (130 if send == signal.SIGTERM else -signal.SIGKILL)
        wait_until(lambda: not processes_with(mark), what="ranks gone")
        child.stdout.close()


def test_script_kills_a_rank_that_does_not_end(tmp_path):
    mark = f"plan-script-{os.getpid()}-{time.monotonic_ns()}"
    body = 'if [ "$RANK" = 0 ]; then trap "" TERM; touch ready; while :; do sleep 600; done; fi; ' \
           'until [ -e ready ]; do sleep 0.1; done; exit 5'
    path = write_script(tmp_path, "--host", "a:2", "--grace", "1", "--env", f"MARK={mark}", "--", "sh", "-c", body)
    done = run_script(path)
    assert done.returncode == 5, done.stderr
    wait_until(lambda: not processes_with(mark), what="ranks gone")
