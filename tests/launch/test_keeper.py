"""``jaxscope run --detach``: the program survives whoever started it, and nothing it says is lost."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from launching import RUN, until
from test_signals import Terminal

from jaxscope.log.store import RunDir


def detached(place, *words, **how):
    """(the run, what was said) of a program started with --detach."""
    ours = place.run("--detach", *words, **how)
    assert ours.returncode == 0, ours.stderr
    return RunDir(ours.stdout.strip()), ours.stderr


def end_of(place, run):
    (event,) = until(lambda: place.events("ProgramExited", run))
    return event


def pids(run):
    return json.loads((run.path / "keeper.json").read_text())


def gone(pid):
    """Ended, whether or not init has taken notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.fixture(autouse=True)
def no_program_outlives_its_test(place):
    yield
    for run in place.runs():
        try:
            os.killpg(pids(run)["program"], signal.SIGKILL)
        except OSError:
            pass


def test_it_returns_at_once_and_says_where_to_look(place):
    run, said = detached(place, place.program("train.py", "import time; time.sleep(30)"))
    assert not gone(pids(run)["program"])
    assert run.path == place.latest.path
    assert said == (
        f"jaxscope: {place.path}/train.py keeps running without this terminal; its output: {run.output}\n"
        f"  jaxscope report {run.path.name}\n"
    )
    assert not place.events("ProgramExited", run)
    os.kill(pids(run)["program"], 0)


def test_its_output_is_whole_and_in_order(place):
    text = "import os, sys\nfor n in range(20000):\n    print(n)\n    n % 100 or print('e', n, file=sys.stderr)\nos.write(1, b'tab\\tcr\\r\\n')\n"
    run, _ = detached(place, "-q", place.program("a.py", text))
    end_of(place, run)
    expected = "".join(f"{n}\n" + (f"e {n}\n" if n % 100 == 0 else "") for n in range(20000)) + "tab\tcr\r\n"
    assert run.output.read_bytes().decode() == expected


@pytest.mark.parametrize(
    ("text", "code", "number"),
    [("", 0, None), ("raise SystemExit(3)", 3, None), ("import os; os.abort()", None, 6), ("1/0", 1, None)],
)
def test_how_it_ended_is_written_down(place, text, code, number):
    run, _ = detached(place, place.program("a.py", text))
    event = end_of(place, run)
    assert (event.exit_code, event.signal) == (code, number)
    assert event.program_pid == pids(run)["program"]
    until(lambda: gone(pids(run)["keeper"]))


LOOK = """
import os, signal, sys
print([os.isatty(fd) for fd in range(3)], repr(sys.stdin.read()), os.getpid() == os.getpgrp(), os.getsid(0) == os.getppid())
print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])), [s for s in (1, 2, 15) if signal.getsignal(s) == signal.SIG_IGN])
print(sorted(int(n) for n in os.listdir("/dev/fd") if os.path.exists(f"/dev/fd/{n}")), os.getcwd(), sys.argv[1:])
print(open("/proc/self/status").read().split("SigIgn:\\t")[1].split()[0] if sys.platform == "linux" else "")
"""


def test_it_has_a_terminal_no_stdin_and_a_session_of_its_own(place):
    run, _ = detached(place, place.program("a.py", LOOK), "x")
    end_of(place, run)
    lines = run.output.read_text().splitlines()
    assert lines[0] == "[False, True, True] '' True True"
    assert lines[1] == "[] []"
    assert lines[2] == f"[0, 1, 2] {Path(__file__).parent} ['x']"
    assert int(lines[3] or "0", 16) & 0xFFFFFF == (1 << 12)  # SIGPIPE, which Python ignores


def test_it_survives_the_hangup_of_the_terminal_it_was_started_from(place):
    program = place.program(
        "a.py", "import time\nfor n in range(15):\n    print(n, flush=True)\n    time.sleep(0.1)\n"
    )
    terminal = Terminal(place, *RUN, "--detach", program)
    terminal.read_until("ended 0")
    terminal.close()
    (run,) = place.runs()
    assert end_of(place, run).exit_code == 0
    assert run.output.read_text() == "".join(f"{n}\n" for n in range(15))


def test_the_size_of_the_terminal_is_passed_on(place):
    import fcntl
    import struct
    import termios

    program = place.program("a.py", "import os; print(os.get_terminal_size(1))")
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 99, 0, 0))
    place.start("--detach", program, stderr=theirs).communicate(timeout=20)
    os.close(ours)
    os.close(theirs)
    end_of(place, place.latest)
    assert place.latest.output.read_text() == "os.terminal_size(columns=99, lines=30)\n"


def test_whoever_reads_our_output_is_not_kept_waiting(place):
    ours = place.start("--detach", "-q", place.program("a.py", "import time; time.sleep(30)"))
    ours.communicate(timeout=20)  # the end of both pipes: nobody else holds them
    assert not gone(pids(place.latest)["program"])


def test_the_heartbeat_goes_on(place):
    run, _ = detached(place, place.program("a.py", "import time; time.sleep(30)"))
    first = run.heartbeat.stat().st_mtime
    until(lambda: run.heartbeat.stat().st_mtime > first + 1)


def test_a_signal_to_the_keeper_is_the_programs_except_a_hangup(place):
    text = "import signal\nsignal.signal(15, lambda *_: 1/0)\nprint('ready', flush=True)\nsignal.pause()"
    run, _ = detached(place, place.program("a.py", text))
    until(lambda: "ready" in run.output.read_text())
    os.kill(pids(run)["keeper"], signal.SIGHUP)
    time.sleep(0.2)
    assert not place.events("ProgramExited", run)
    os.kill(pids(run)["keeper"], signal.SIGTERM)
    assert end_of(place, run).exit_code == 1
    assert "ZeroDivisionError" in run.output.read_text()


def test_stopping_the_programs_group_leaves_the_keeper_to_tell_of_it(place):
    text = "import time\nprint('ready', flush=True)\ntime.sleep(30)"
    run, _ = detached(place, place.program("a.py", text))
    until(lambda: "ready" in run.output.read_text())
    os.killpg(pids(run)["program"], signal.SIGINT)
    assert end_of(place, run).signal == signal.SIGINT
    assert "KeyboardInterrupt" in run.output.read_text()


def test_children_that_outlive_the_program_can_still_print(place):
    text = """
    import subprocess, sys
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1); print('late')"])
    """
    run, _ = detached(place, place.program("a.py", text))
    end_of(place, run)
    assert run.output.read_text() == ""
    until(lambda: run.output.read_text() == "late\n")
    until(lambda: gone(pids(run)["keeper"]))


def test_what_the_program_records_is_recorded(place):
    place.fake_jax()
    run, _ = detached(place, place.program("a.py", "import jax"))
    end_of(place, run)
    assert len(place.events("RunStarted", run)) == 1


def test_without_a_place_for_the_output_nothing_is_started(place):
    ours = place.run("--detach", "-o", "/dev/null/x", "-c", "print(1)")
    assert (ours.returncode, ours.stdout) == (2, "")
    assert "cannot make the run directory" in ours.stderr


def test_a_missing_script_is_an_error_at_once(place):
    ours = place.run("--detach", "nowhere.py")
    assert (ours.returncode, ours.stdout) == (2, "")
    assert "there is no program 'nowhere.py'" in ours.stderr
