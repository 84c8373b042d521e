"""What can't work says why, in one clear message, with the right exit code, and leaves nothing behind."""

import json
import pathlib
import socket

import pytest

from conftest import BIN, SOURCE, free_port


def refused(cluster, *args, code=2):
    """The error of a command that must not have started anything."""
    _, err = cluster.muster(*args, code=code)
    assert err.startswith("muster: "), err
    assert not (cluster.work / "output").exists() or not list((cluster.work / "output").iterdir())
    return err


@pytest.mark.parametrize(
    "args,texts",
    [
        (["sumbit"], ["unknown command 'sumbit'", "did you mean 'submit'"]),
        (["submit", "--hostfil", "x"], ["unknown flag '--hostfil'", "--hostfile"]),
        (["plan", "--tpp", "2"], ["unknown flag '--tpp'", "--tp"]),
        (["plan", "--tp", "0"], ["--tp", "'0'"]),
        (["plan", "--tp", "two"], ["--tp", "'two'"]),
        (["plan", "--transport", "opensh"], ["--transport", "did you mean 'openssh'"]),
        (["plan", "--transport", "command:docker exec {hst}"], ["--transport", "did you mean 'host'"]),
        (["logs", "--rank", "3-1"], ["--rank", "3-1"]),
        (["logs", "--stream", "both"], ["--stream", "both"]),
        (["logs", "--", "x"], ["nothing may follow"]),
        (["stop"], ["--all"]),
        (["stop", "last", "--grace", "soon"], ["--grace", "soon"]),
        (["serve", "--force"], ["--force"]),
        (["completion", "csh"], ["bash|zsh|fish"]),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else None,
)
def test_command_line(cluster, args, texts):
    err = refused(cluster, *args)
    for text in texts:
        assert text in err


def test_world_that_does_not_divide_names_sizes_that_do(cluster):
    hosts = cluster.hostfile(slots=2)
    for command in ("plan", "submit"):
        err = refused(cluster, command, "--hostfile", hosts, "--tp", 3, *cluster.rank("exit.py", 0))
        assert "4" in err and "3" in err
        assert "--tp 2" in err or "TP 2" in err or "tp=2" in err.lower() or "TP=2" in err, err


def test_json_of_a_refused_submit(cluster):
    out, _ = cluster.muster("submit", "--hostfile", cluster.hostfile(), "--tp", 3, "--json", "--", "true", code=2)
    job = json.loads(out)
    assert (job["state"], job["cause"], job["code"]) == ("failed", "invalid", 2)
    assert job["message"]


def test_unreadable_hostfile_and_recipe(cluster):
    err = refused(cluster, "submit", "--hostfile", "nowhere/hosts", "--", "true")
    assert "nowhere/hosts" in err and "No such file" in err
    err = refused(cluster, "submit", "nowhere.toml", "--hostfile", cluster.hostfile())
    assert "nowhere.toml" in err and "No such file" in err


def test_wrong_hostfile_has_place_reason_and_nearest_key(cluster):
    path = cluster.work / "hosts"
    path.write_text("127.0.0.2 slots=2\n127.0.0.3 slot=2\n")
    err = refused(cluster, "submit", "--hostfile", path, "--", "true")
    assert f"{path}:2:" in err and "slot" in err and "slots" in err


def test_unknown_recipe_key(cluster):
    recipe = cluster.work / "job.toml"
    recipe.write_text('[job]\nname = "x"\ncomand = ["true"]\n')
    err = refused(cluster, "plan", recipe, "--hostfile", cluster.hostfile())
    assert f"{recipe}:3:" in err and "comand" in err and "command" in err


def test_no_command(cluster):
    assert "command" in refused(cluster, "submit", "--hostfile", cluster.hostfile())
    assert "command" in refused(cluster, "submit", "--hostfile", cluster.hostfile(), "--")
    err = refused(cluster, "submit", "--hostfile", cluster.hostfile(), "a.toml", "b")
    assert "after --" in err


def test_unknown_job_names_the_nearest(cluster):
    cluster.run("--name", "pretrain", *cluster.rank("exit.py", 0))
    for args in (["logs", "pretrian"], ["stop", "pretrian"], ["ps", "pretrian"]):
        _, err = cluster.muster(*args, code=2)
        assert "pretrian" in err and "pretrain" in err


def test_missing_program(cluster):
    code, job, _ = cluster.run("--", "/nowhere/train")
    assert code in (120, 121)
    assert "/nowhere/train" in job["message"] and "127.0.0." in job["message"]
    code, job, _ = cluster.run("--", "no-such-program-at-all")
    assert code in (120, 121) and "no-such-program-at-all" in job["message"]


def test_missing_working_folder(cluster):
    code, job, _ = cluster.run("--workdir", "/nowhere/at/all", "--", "true")
    assert code in (120, 121) and "/nowhere/at/all" in job["message"]


def test_host_that_refuses(cluster):
    port = free_port("127.0.0.3")
    code, job, _ = cluster.finish(cluster.submit("--", "true", options=f"transport=direct worker_port={port}"), 40)
    assert code == 120
    assert "127.0.0.3" in job["message"] and job["cause"] == "preflight_failed"
    assert "refused" in job["message"].lower()


def test_host_that_accepts_and_never_answers(cluster):
    with socket.socket() as silent:
        silent.bind(("127.0.0.3", 0))
        silent.listen()
        hosts = cluster.work / "hosts"
        hosts.write_text(f"127.0.0.2 slots=1\n127.0.0.3 slots=1 transport=direct worker_port={silent.getsockname()[1]}\n")
        submit = cluster.popen("submit", "--hostfile", hosts, "--json", "--", "true")
        code, job, _ = cluster.finish(submit, 40)
    assert code == 120 and "127.0.0.3" in job["message"]


def test_port_taken_while_the_job_starts_is_named(cluster):
    code, job, live = cluster.run("--grace", "1s", *cluster.rank("bind_port.py", 20), slots=2)
    assert code == 98
    assert job["rank"] == 0 and "Address already in use" in live
    assert pathlib.Path(job["output_dir"]).is_dir()


@pytest.mark.skipif(not (BIN / "muster-train").exists(), reason="the trainer is not built")
@pytest.mark.parametrize("flag,texts", [("trian-iters=5", ["trian-iters", "--train-iters"]), ("hidden-size=127", ["127"])])
def test_wrong_trainer_flag_is_refused_before_anything_starts(cluster, flag, texts):
    recipe = SOURCE / "recipes/tiny_cpu.toml"
    for command in ("plan", "submit"):
        err = refused(cluster, command, recipe, "--hostfile", cluster.hostfile(), "--workdir", SOURCE, "--flag", flag)
        for text in texts:
            assert text in err


def test_unknown_check_names_the_known_ones(cluster):
    err = refused(cluster, "submit", "--hostfile", cluster.hostfile(), "--skip", "prot", "--", "true")
    assert "'prot'" in err and "port" in err


def test_the_last_of_a_repeated_flag_counts(cluster):
    hosts = cluster.hostfile()
    assert json.loads(cluster.muster("plan", "--hostfile", hosts, "--tp", 4, "--tp", 2, "--json", "--", "true")[0])["tp"] == 2


def test_a_state_folder_that_cannot_be_made_names_the_fix(cluster):
    (cluster.work / "file").touch()
    cluster.env["MUSTER_STATE"] = str(cluster.work / "file" / "state")
    try:
        err = refused(cluster, "submit", "--hostfile", cluster.hostfile(), "--", "true")
    finally:
        cluster.env["MUSTER_STATE"] = str(cluster.state)
    assert "can't make the state folder" in err and "set MUSTER_STATE to a folder that you can write" in err


def test_a_host_where_nobody_listens_is_said_at_once_and_given_up_soon(cluster):
    (cluster.work / "hosts").write_text(f"127.0.0.2 slots=1 transport=direct worker_port={free_port('127.0.0.2')}\n")
    out, err = cluster.muster("submit", "--hostfile", "hosts", "--", "true", code=120)
    assert "connecting 0/1 nodes: 127.0.0.2:" in out and "start it with: musterd --listen" in out
    assert "connect: 127.0.0.2: 127.0.0.2:" in err and "did not say hello" not in err
    assert cluster.json("nodes")["nodes"] == []  # a slip is not remembered
