"""Every golden hostfile and --host list through `muster hosts`."""

import json
import os
import subprocess

import pytest

from conftest import GOLDEN, MUSTER

FOLDER = GOLDEN / "hostfiles"
FILES = sorted(p.name for p in FOLDER.glob("*.hostfile"))
LISTS = json.loads((FOLDER / "host-option.json").read_text())["cases"] if FOLDER.exists() else []


def hosts(*args):
    done = subprocess.run([MUSTER, "hosts", *args], capture_output=True, stdin=subprocess.DEVNULL, timeout=30)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def check(verdict, args, place):
    code, out, err = hosts(*args, "--json")
    answer = json.loads(out)
    if "error" not in verdict:
        assert code == 0, err
        assert answer == {"hosts": verdict["hosts"], "warnings": verdict["warnings"]}
        return
    expected = verdict["error"]
    assert code == 2
    assert answer["error"]["line"] == expected["line"]
    message = answer["error"]["message"]
    assert message
    for text in expected.get("mentions", []):
        assert text.lower() in (message + err).lower()
    if "other_line" in expected:
        assert f"{expected['other_line']}" in message
    first = err.splitlines()[0]
    assert first.startswith(f"{place}:{expected['line']}: " if expected["line"] else f"{place}: "), first


@pytest.mark.parametrize("name", FILES)
def test_hostfile(name):
    path = FOLDER / name
    verdict = json.loads(path.with_suffix(".json").read_text())
    check(verdict, ["--hostfile", str(path)], str(path))


@pytest.mark.parametrize("case", LISTS, ids=lambda c: c["arg"])
def test_host_list(case):
    check(case, ["--host", case["arg"]], "--host")


def test_there_are_goldens():
    assert len(FILES) > 50 and len(LISTS) > 5


def test_unreadable_file(tmp_path):
    code, out, err = hosts("--hostfile", str(tmp_path / "none"), "--json")
    assert code == 2
    assert json.loads(out)["error"]["line"] == 0
    assert str(tmp_path / "none") in err and "No such file" in err


def test_at_most_twenty_errors(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("slots=8\n" * 50)
    code, _, err = hosts("--hostfile", str(path))
    assert code == 2
    lines = err.splitlines()
    assert len(lines) == 20
    assert lines[19].startswith(f"{path}:20: ")


def test_table(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("node[01-02] slots=8 user=root # rack 1\n")
    code, out, _ = hosts("--hostfile", str(path))
    assert code == 0
    assert "\x1b" not in out
    assert [line.split()[:3] for line in out.splitlines()[1:]] == [["node01", "8", "root"], ["node02", "8", "root"]]


def test_needs_exactly_one_source():
    assert hosts()[0] == 2
    assert hosts("--host", "a", "--hostfile", os.devnull)[0] == 2
