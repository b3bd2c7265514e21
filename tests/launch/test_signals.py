"""Signals reach the program exactly once, and its end is ours."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from launching import HERE, RUN, until

COUNTS = """
import signal, sys, time
heard = []
for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT", "SIGCONT", "SIGWINCH", "SIGALRM", "SIGXCPU"):
    if name not in sys.argv[1:]:
        signal.signal(getattr(signal, name), lambda number, frame: heard.append(signal.Signals(number).name))
print("ready", flush=True)
end = time.monotonic() + 20
before = 0
while time.monotonic() < end:
    time.sleep(0.02)
    if len(heard) > before:
        before = len(heard)
        end = time.monotonic() + 0.5
print(heard, flush=True)
"""


def ready(process):
    assert process.stdout.readline() == "ready\n"


def program_of(process):
    """The program's process id, by what the runner's children execute."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return next((pid for pid in children if "jaxscope" not in Path(f"/proc/{pid}/cmdline").read_text()), None)


def state(pid):
    """R, S, T (stopped), Z."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize(
    "name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT", "SIGCONT", "SIGALRM", "SIGXCPU"]
)
def test_a_signal_sent_to_us_alone_reaches_the_program_once(place, name):
    process = place.start("-q", place.program("a.py", COUNTS))
    ready(process)
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, f"['{name}']\n", "")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGUSR1"])
def test_a_signal_sent_to_the_whole_group_reaches_the_program_once(place, name):
    process = place.start("-q", place.program("a.py", COUNTS))
    ready(process)
    os.killpg(process.pid, getattr(signal, name))
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, f"['{name}']\n", "")


def test_what_timeout_sends_reaches_the_program_once(place):
    # timeout(1) sends to its child, and then to its whole group, and SIGCONT after it.
    program = place.program("a.py", COUNTS)
    plain, ours = (
        subprocess.run(
            ["timeout", "-s", "USR1", "1", sys.executable, *words, program],
            cwd=HERE, env=place.env, capture_output=True, text=True, timeout=30,
        ).stdout
        for words in ([], [*RUN[1:], "-q"])
    )  # fmt: skip
    # Two signals of one kind that meet are one: how many a program hears is the kernel's affair.
    assert {*ours.split("'")} == {*plain.split("'")}
    assert 1 <= ours.count("SIGUSR1") <= 2


def test_signals_after_one_another_are_each_passed_on(place):
    process = place.start("-q", place.program("a.py", COUNTS))
    ready(process)
    for _ in range(3):
        process.send_signal(signal.SIGUSR1)
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGUSR1)
    assert process.communicate(timeout=30)[0] == f"{['SIGUSR1'] * 4}\n"


def test_a_program_that_signals_its_parent_does_not_hear_itself(place):
    program = place.program(
        "a.py",
        COUNTS.replace(
            "before = 0\n", "import os; os.kill(os.getppid(), signal.SIGUSR1); before, end = 0, end - 19.5\n"
        ),
    )
    assert place.run("-q", program).stdout == "ready\n[]\n"


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1"])
def test_a_signal_that_ends_the_program_ends_us(place, name):
    process = place.start("-q", place.program("a.py", COUNTS), name)
    ready(process)
    process.send_signal(getattr(signal, name))
    process.communicate(timeout=30)
    assert process.returncode == -getattr(signal, name)
    (event,) = place.events("ProgramExited")
    assert event.signal == getattr(signal, name)


def test_what_nohup_ignores_stays_ignored(place):
    process = place.start(
        "-q",
        place.program("a.py", COUNTS),
        "SIGHUP",
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    ready(process)
    os.killpg(process.pid, signal.SIGHUP)
    process.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    process.send_signal(signal.SIGUSR1)
    assert process.communicate(timeout=30)[0] == "['SIGUSR1']\n"


def test_a_parent_that_ignores_its_childrens_end_costs_no_exit_code(place):
    ours = place.run(
        "-q", "-c", "raise SystemExit(3)", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    )
    assert ours.returncode == 3


def test_a_signal_mask_we_inherit_is_the_programs(place):
    code = "import signal; print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))"
    block = lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2, signal.SIGTERM])
    plain = place.run("-c", code, plain=True, preexec_fn=block)
    assert place.run("-q", "-c", code, preexec_fn=block).stdout == plain.stdout
    assert "SIGUSR2" in plain.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_kill_9_on_us_ends_the_program_too(place):
    process = place.start("-q", place.program("a.py", COUNTS))
    ready(process)
    program = until(lambda: program_of(process))
    process.kill()
    process.wait()
    words = Path(f"/proc/{program}/cmdline")
    until(lambda: not words.exists() or not words.read_text(), seconds=5)  # a zombie has none


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_nothing_of_ours_is_left_behind(place):
    process = place.start("-q", place.program("a.py", COUNTS))
    ready(process)
    process.send_signal(signal.SIGUSR1)
    process.communicate(timeout=30)
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_without_siginfo_signals_reach_the_program_once_as_well(place):
    # As on macOS: no sigtimedwait.
    launcher = place.program(
        "macos.py", "import signal\ndel signal.sigtimedwait\nfrom jaxscope.cli import main\nmain()"
    )
    program = place.program("a.py", COUNTS)
    for send in (os.kill, os.killpg):
        process = subprocess.Popen(
            [sys.executable, launcher, "run", "-q", program],
            stdout=subprocess.PIPE,
            env=place.env,
            process_group=0,
            text=True,
        )
        ready(process)
        send(process.pid, signal.SIGTERM)
        assert process.communicate(timeout=30)[0] == "['SIGTERM']\n"
        assert process.returncode == 0


# A shell with job control, as far as these tests need one: the leader of a session on a terminal, its job
# in a process group of its own in the foreground.
SHELL = """
import fcntl, os, signal, sys, termios
terminal = os.open(sys.argv.pop(1), os.O_RDWR)
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
for fd in range(3):
    os.dup2(terminal, fd)
os.close(terminal)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
def foreground(group):
    os.tcsetpgrp(0, group)
def wait():
    _, status = os.waitpid(job, os.WUNTRACED)
    foreground(os.getpgrp())
    if os.WIFSTOPPED(status):
        print("stopped", signal.Signals(os.WSTOPSIG(status)).name, flush=True)
        return True
    print("ended", os.waitstatus_to_exitcode(status), flush=True)
job = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, setpgroup=0, setsigdef=[signal.SIGTTOU])
foreground(job)
while wait():
    foreground(job)
    os.killpg(job, signal.SIGCONT)
"""


class Terminal:
    """A shell and its job on a pseudo-terminal."""

    def __init__(self, place, *command):
        shell = place.program("shell.py", SHELL)
        self.fd, self.theirs = os.openpty()
        words = [sys.executable, shell, os.ttyname(self.theirs), *command]
        self.shell = subprocess.Popen(words, cwd=HERE, env=place.env, start_new_session=True)
        self.said = ""

    def read_until(self, word, seconds=20):
        end = time.monotonic() + seconds
        while word not in self.said:
            assert time.monotonic() < end, self.said
            try:
                self.said += os.read(self.fd, 4096).decode()
            except OSError:
                break
        assert word in self.said, self.said
        before, self.said = self.said.split(word, 1)
        return before

    def type(self, keys):
        os.write(self.fd, keys)

    def close(self):
        os.close(self.fd)  # the hangup
        os.close(self.theirs)
        self.shell.wait()


@pytest.fixture(params=["plain", "jaxscope"])
def words(request):
    """The tests on a terminal hold for plain python too: that is what they compare with."""
    return [sys.executable] if request.param == "plain" else [*RUN, "-q", "--no-tui"]


def test_ctrl_c_interrupts_the_program_once(place, words):
    terminal = Terminal(place, *words, place.program("a.py", COUNTS))
    terminal.read_until("ready")
    terminal.type(b"\x03")
    terminal.read_until("['SIGINT']")
    terminal.read_until("ended 0")
    terminal.close()


def test_ctrl_c_on_a_program_that_does_not_mind_it_ends_us_by_sigint(place, words):
    # Short sleeps: Python sleeps on if the signal arrives just before the sleep begins.
    text = "import time\nprint('ready', flush=True)\nfor _ in range(400): time.sleep(0.05)"
    terminal = Terminal(place, *words, place.program("a.py", text))
    terminal.read_until("ready")
    terminal.type(b"\x03")
    assert terminal.read_until("ended -2").count("KeyboardInterrupt") == 1
    terminal.close()


def test_ctrl_backslash_ends_both(place, words):
    program = place.program("a.py", "import time\nprint('ready', flush=True)\ntime.sleep(20)")
    terminal = Terminal(place, *words, program)
    terminal.read_until("ready")
    terminal.type(b"\x1c")
    terminal.read_until(f"ended -{int(signal.SIGQUIT)}")
    terminal.close()


def test_ctrl_z_stops_and_the_shell_continues(place, words):
    terminal = Terminal(place, *words, place.program("a.py", COUNTS))
    terminal.read_until("ready")
    terminal.type(b"\x1a")
    terminal.read_until("stopped SIGTSTP")
    terminal.read_until("['SIGCONT']")
    terminal.read_until("ended 0")
    terminal.close()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_program_stopped_and_continued_by_its_number_does_not_leave_us_stopped(place):
    process = place.start("-q", place.program("a.py", COUNTS))
    ready(process)
    program = int(until(lambda: program_of(process)))
    for number in (signal.SIGSTOP, signal.SIGTSTP):
        os.kill(program, number)
        until(lambda: state(program) == "T")
        time.sleep(0.3)
        assert state(process.pid) == "S"
        os.kill(program, signal.SIGCONT)
        until(lambda: state(program) == "S")
    assert process.communicate(timeout=30)[0].startswith("['SIGCONT'")
    assert process.returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_we_stop_and_go_on_with_the_program_when_we_alone_are_signalled(place):
    process = place.start("-q", place.program("a.py", COUNTS))
    ready(process)
    program = int(until(lambda: program_of(process)))
    process.send_signal(signal.SIGTSTP)
    until(lambda: state(program) == state(process.pid) == "T")
    process.send_signal(signal.SIGCONT)
    assert process.communicate(timeout=30)[0] == "['SIGCONT']\n"
    assert process.returncode == 0


def test_a_program_that_ignores_ctrl_z_is_not_stopped(place, words):
    program = place.program("a.py", "import signal\nsignal.signal(signal.SIGTSTP, signal.SIG_IGN)\n" + COUNTS)
    terminal = Terminal(place, *words, program)
    terminal.read_until("ready")
    terminal.type(b"\x1a")
    time.sleep(0.3)
    terminal.type(b"\x03")
    assert "stopped" not in terminal.read_until("['SIGINT']")
    terminal.read_until("ended 0")
    terminal.close()


def test_the_program_reads_the_terminal(place, words):
    program = place.program(
        "a.py",
        "import sys\nprint([s.isatty() for s in (sys.stdin, sys.stdout, sys.stderr)])\nprint(input('name? ')[::-1])",
    )
    terminal = Terminal(place, *words, program)
    terminal.read_until("[True, True, True]")
    terminal.read_until("name? ")
    terminal.type(b"abc\n")
    terminal.read_until("cba")
    terminal.read_until("ended 0")
    terminal.close()


def test_a_hangup_of_the_terminal_reaches_the_program_once(place, words):
    program = place.program(
        "a.py", COUNTS.replace("print(heard, flush=True)", "open(sys.argv[-1], 'w').write(str(heard))")
    )
    heard = place.path / "heard"
    terminal = Terminal(place, *words, program, str(heard))
    terminal.read_until("ready")
    terminal.close()
    until(heard.exists)
    until(heard.read_text)
    # The kernel sends SIGHUP and SIGCONT to the foreground group when the session's leader goes.
    assert heard.read_text().count("SIGHUP") == 1
