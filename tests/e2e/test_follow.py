"""Following a job: signals, detaching, and what a terminal sees."""

import json
import os
import pty
import select
import signal
import subprocess
import time

import pytest

from conftest import MUSTER, wait_until


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_job_and_gives_130(cluster, signum):
    submit = cluster.submit("--grace", "5s", *cluster.rank("step_log.sh", 1000))
    cluster.wait_state("running")
    submit.send_signal(signum)
    code, job, _ = cluster.finish(submit, 20)
    assert code == 130
    assert (job["state"], job["cause"]) == ("stopped", "stopped_by_user")
    assert all(n["clean"] for n in job["nodes"])


def test_a_second_signal_takes_the_grace_away(cluster):
    submit = cluster.submit("--grace", "100s", *cluster.rank("ignore_term.py"))
    cluster.wait_state("running")
    cluster.wait_lines(4, "")
    submit.send_signal(signal.SIGINT)
    cluster.wait_state("stopping")
    submit.send_signal(signal.SIGINT)
    assert cluster.finish(submit, 20)[0] == 130


def test_hanging_up_leaves_the_job_running(cluster):
    submit = cluster.submit(*cluster.rank("step_log.sh", 1000))
    cluster.wait_state("running")
    submit.send_signal(signal.SIGHUP)
    out, _ = submit.communicate(timeout=10)
    assert submit.returncode == 0
    assert json.loads(out)["state"] == "running"
    time.sleep(0.3)
    assert cluster.job()["state"] == "running"
    cluster.muster("stop", "last")


def test_killing_the_viewer_leaves_the_job_running(cluster):
    submit = cluster.submit(*cluster.rank("step_log.sh", 1000))
    cluster.wait_state("running")
    submit.kill()
    submit.wait()
    time.sleep(0.3)
    assert cluster.job()["state"] == "running"
    cluster.muster("stop", "last")


def test_detach_logs_ps_stop(cluster):
    out, _ = cluster.muster("submit", "--hostfile", cluster.hostfile(), "--name", "night", "--detach",
                            *cluster.rank("step_log.sh", 8, 0.1))
    assert "muster logs -f 1" in out
    follower = cluster.popen("logs", "-f", "night")
    cluster.wait_state("running")
    table, _ = cluster.muster("ps")
    assert "night" in table and "\x1b" not in table
    ended = cluster.wait_state("succeeded")
    assert ended["code"] == 0
    text = follower.communicate(timeout=20)[0].decode()
    assert follower.returncode == 0
    after, _ = cluster.muster("logs", "night")
    assert sorted(after.splitlines()) == sorted(text.splitlines())
    for rank in range(4):
        assert sum(line.startswith(f"[{rank}] ") for line in after.splitlines()) >= 8
    tail, _ = cluster.muster("logs", "night", "--rank", "3", "--tail", "2")
    assert len(tail.splitlines()) == 2 and tail.startswith("[3] ")
    one_host, _ = cluster.muster("logs", "night", "--host", "127.0.0.3")
    assert {line[:3] for line in one_host.splitlines()} == {"[2]", "[3]"}


def test_a_half_line_is_shown_at_once_and_is_one_line_in_the_end(cluster):
    child = cluster.popen("submit", "--hostfile", cluster.hostfile(slots=1, hosts=["127.0.0.2"]),
                          *cluster.rank("half_line.py", 2))
    seen = b""

    def shown():
        nonlocal seen
        if select.select([child.stdout], [], [], 0.02)[0]:
            seen += os.read(child.stdout.fileno(), 65536)
        return seen.endswith(b"[0] loading weights ...")

    wait_until(shown, 15, "the half line is shown")
    rest = child.communicate(timeout=20)[0]
    assert b"[0] loading weights ... done\n" in seen + rest


def test_output_of_a_viewer_that_nobody_reads(cluster):
    follower = subprocess.Popen([MUSTER, "submit", "--hostfile", cluster.hostfile(), *cluster.rank("exit.py", 7, 0.5)],
                                env=cluster.env, cwd=cluster.work, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                stdin=subprocess.DEVNULL)
    follower.stdout.close()
    assert follower.wait(timeout=30) == 7


class Terminal:
    """A muster command on a terminal of its own."""

    def __init__(self, cluster, *args):
        pid, self.fd = pty.fork()
        if pid == 0:
            os.chdir(cluster.work)
            os.execve(MUSTER, [MUSTER, *map(str, args)], cluster.env | {"TERM": "xterm"})
        self.pid = pid
        self.text = ""

    def expect(self, text, timeout=20):
        deadline = time.monotonic() + timeout
        while text not in self.text:
            assert time.monotonic() < deadline, f"{text!r} not in {self.text!r}"
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self.fd, 65536).decode()
                except OSError:
                    break
        assert text in self.text

    def send(self, text):
        os.write(self.fd, text.encode())

    def wait(self):
        try:
            while os.read(self.fd, 65536):
                pass
        except OSError:
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def submit_on_terminal(cluster):
    terminal = Terminal(cluster, "submit", "--hostfile", cluster.hostfile(), *cluster.rank("step_log.sh", 1000, 0.1))
    terminal.expect("running:")
    assert "\x1b[" in terminal.text  # colours
    terminal.send("\x03")
    terminal.expect("[s]top the job, [d]etach")
    return terminal


def test_ctrl_c_asks_and_d_detaches(cluster):
    terminal = submit_on_terminal(cluster)
    terminal.send("d\n")
    assert terminal.wait() == 0
    assert cluster.job()["state"] == "running"
    cluster.muster("stop", "last")


def test_ctrl_c_asks_and_enter_goes_on_and_s_stops(cluster):
    terminal = submit_on_terminal(cluster)
    terminal.send("\n")
    time.sleep(0.3)
    assert cluster.job()["state"] == "running"
    terminal.text = ""
    terminal.send("\x03")
    terminal.expect("[s]top")
    terminal.send("s\n")
    assert terminal.wait() == 130


def test_the_job_is_shown_and_ends_while_the_question_stands(cluster):
    terminal = Terminal(cluster, "submit", "--hostfile", cluster.hostfile(), *cluster.rank("step_log.sh", 30, 0.1))
    terminal.expect("running:")
    terminal.send("\x03")
    terminal.expect("then Enter: ")
    terminal.text = ""
    terminal.expect("[0] ")  # lines go on
    terminal.expect("then Enter: ")  # and the question stands below them
    terminal.expect("succeeded after")
    assert terminal.wait() == 0


def test_logs_say_why_there_are_none(cluster):
    cluster.run("--", "/nowhere/train")
    out, err = cluster.muster("logs", "1")
    assert out == "" and err == "muster: job 1 wrote nothing, none of its ranks has run; muster why 1\n"
    for _ in range(2):
        cluster.muster("submit", "--hostfile", cluster.hostfile(), "--detach", *cluster.rank("step_log.sh", 1000))
    out, err = cluster.muster("logs", "3")
    assert out == "" and err == "muster: job 3 is queued; muster ps says what it waits for\n"
    cluster.wait_lines(1, "", "2")
    assert cluster.muster("logs", "2")[1] == ""


def test_two_ctrl_c_stop(cluster):
    terminal = submit_on_terminal(cluster)
    terminal.send("\x03")
    assert terminal.wait() == 130
    assert cluster.job()["state"] == "stopped"


def test_closing_the_terminal_leaves_the_job_running(cluster):
    terminal = Terminal(cluster, "submit", "--hostfile", cluster.hostfile(), *cluster.rank("step_log.sh", 1000, 0.1))
    terminal.expect("running:")
    os.close(terminal.fd)
    os.waitpid(terminal.pid, 0)
    time.sleep(0.3)
    assert cluster.job()["state"] == "running"
    cluster.muster("stop", "last")
