"""The completion scripts, the bash one by a real bash."""

import subprocess

import pytest

from conftest import BIN, MUSTER, SOURCE

SCRIPT = r"""
source <(muster completion bash)
COMP_WORDS=("$@") COMP_CWORD=$(( $# - 1 ))
_muster
printf '%s\n' "${COMPREPLY[@]}"
"""


def complete(*words, env=None, cwd="/"):
    env = dict(env or {"HOME": "/"}) | {"PATH": f"{BIN}:/usr/bin:/bin"}
    done = subprocess.run(["bash", "--norc", "-c", SCRIPT, "bash", *words], env=env, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_commands():
    assert complete("muster", "s") == ["submit", "stop", "stage", "serve"]
    assert "--version" in complete("muster", "")


def test_flags_of_a_command():
    assert complete("muster", "submit", "--glob") == ["--global-batch"]
    assert {"--tp", "--pp", "--cp", "--detach", "--json", "--hostfile"} <= set(complete("muster", "submit", "--"))
    assert complete("muster", "stop", "--gr") == ["--grace"]


def test_values():
    assert complete("muster", "submit", "--transport", "") == ["local", "direct", "ssh", "openssh", "command"]
    assert complete("muster", "logs", "--stream", "") == ["out", "err"]
    assert complete("muster", "completion", "") == ["bash", "zsh", "fish"]


def test_files(tmp_path):
    (tmp_path / "hosts-a").write_text("")
    assert complete("muster", "plan", "--hostfile", "hosts", cwd=tmp_path) == ["hosts-a"]
    assert complete("muster", "submit", "--hostfile", "x", "--", "hosts", cwd=tmp_path) == ["hosts-a"]


def test_job_names(cluster):
    cluster.run("--name", "pretrain", *cluster.rank("exit.py", 0), slots=1)
    assert set(complete("muster", "logs", "", env=cluster.env)) == {"last", "1", "pretrain"}
    assert complete("muster", "stop", "pre", env=cluster.env) == ["pretrain"]


@pytest.mark.parametrize("shell,name", [("bash", "muster.bash"), ("zsh", "_muster"), ("fish", "muster.fish")])
def test_the_shipped_scripts_are_current(shell, name):
    made = subprocess.run([MUSTER, "completion", shell], capture_output=True, text=True, check=True).stdout
    shipped = (SOURCE / "deploy/completion" / name).read_text()
    assert made == shipped, f"muster completion {shell} > deploy/completion/{name}"
