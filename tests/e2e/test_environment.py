"""Where a rank's variables come from, and where secrets do not turn up."""

import json
import os
import pathlib

import pytest

from conftest import PYTHON, processes_with

SECRET = "s3cr3t-value-that-nobody-may-see"


@pytest.fixture
def home(cluster, tmp_path):
    cluster.env["HOME"] = str(tmp_path)
    cluster.env.pop("DS_ENV_FILE", None)
    return tmp_path


def variables(cluster, job, rank=0):
    text = cluster.log_file(job, rank).read_text().splitlines()[-1]
    return json.loads(text)["env"]


def test_files_reach_every_rank_in_their_order(cluster, home):
    (home / ".deepspeed_env").write_text("# of DeepSpeed\n\nA=home_ds\nB=home_ds\nC=home_ds\nD=home_ds\n")
    (cluster.work / ".deepspeed_env").write_text("export B='work ds'\nC=x\nD=x\n")
    (home / ".muster_env").write_text("C=home_ms\nD=x\n")
    (cluster.work / ".muster_env").write_text('D="work \\"ms\\""\nJSON={"a": [1, "b"]}\nOWN\n')
    (cluster.work / "more.env").write_text("E=file # why\nF=file\n")
    cluster.env["OWN"] = "mine"
    code, job, live = cluster.run("--env-file", "more.env", "--env", "F=flag",
                                  *cluster.rank("env_json.py", "--all"))
    assert code == 0, live
    for rank in range(4):
        env = variables(cluster, job, rank)
        assert {k: env.get(k) for k in "ABCDEF"} == {
            "A": "home_ds", "B": "work ds", "C": "home_ms", "D": 'work "ms"', "E": "file", "F": "flag"}
        assert env["JSON"] == '{"a": [1, "b"]}' and env["OWN"] == "mine"
    for path in (home / ".deepspeed_env", cluster.work / ".muster_env", cluster.work / "more.env"):
        assert f"of {path}" in live


def test_a_mistake_in_a_file_is_named_by_line(cluster, home):
    (cluster.work / ".muster_env").write_text("A=1\nRANK=3\nB='x\n")
    out, err = cluster.muster("submit", "--hostfile", cluster.hostfile(), "--", "true", code=2)
    path = cluster.work / ".muster_env"
    assert f"{path}:2: RANK is set by muster" in err and f"{path}:3: " in err


def test_secrets_turn_up_nowhere_but_in_the_ranks(cluster, home):
    (home / "key").write_text(SECRET + "1\n")
    (home / ".deepspeed_env").write_text(f"WANDB_API_KEY={SECRET}2\n")
    cluster.env["HF_TOKEN"] = SECRET + "3"
    recipe = cluster.work / "r.toml"
    recipe.write_text('[job]\nname = "quiet"\ncommand = ["sh", "-c", "test -n \\"$A_KEY\\" && test -n \\"$HF_TOKEN\\" && '
                      'test -n \\"$WANDB_API_KEY\\" && sleep 600"]\n[secrets]\nA_KEY = { file = "~/key" }\n')
    child = cluster.submit(str(recipe), "--env", "HF_TOKEN")
    cluster.wait_state("running")
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert SECRET.encode() not in entry.read_bytes(), entry
        except OSError:
            pass
    assert SECRET not in json.dumps(cluster.json("ps", "last"))
    out, err = cluster.muster("plan", str(recipe), "--env", "HF_TOKEN", "--hostfile", cluster.hostfile(), "--rank", "0")
    assert SECRET not in out + err and "HF_TOKEN" in out
    cluster.muster("stop", "last", "--grace", "1s")
    code, job, live = cluster.finish(child)
    assert code == 130 and SECRET not in live
    # Ended: only the nodes' own rank specs, which go with the job, may ever have had them.
    controller = cluster.state / "controller"
    for path in [*pathlib.Path(job["output_dir"]).rglob("*"), *controller.rglob("*")]:
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path
    # Ours to the ranks and back: each saw all three, or it would have failed before the stop.
    assert all(r["state"] == "killed" for r in job["ranks"]), job["ranks"]


def test_ranks_may_use_what_the_daemon_may(cluster, home):
    script = "import os; print(sorted(os.sched_getaffinity(0)))"
    for bind in ("numa", "none"):
        code, job, live = cluster.run("--bind-to", bind, "--", PYTHON, "-c", script)
        assert code == 0, live
        assert json.loads(cluster.log_file(job, 3).read_text()) == sorted(os.sched_getaffinity(0))
    out, err = cluster.muster("submit", "--hostfile", cluster.hostfile(), "--bind-to", "nume", "--", "true", code=2)
    assert "did you mean 'numa'" in err
