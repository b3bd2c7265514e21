"""What ``jaxscope run`` says on stderr, and when it says nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from launching import HERE

# Stands for the reading wing: the summary of a recorded run, and a line per event of its log.
READERS = """
import sys, types
import jaxscope.report
from jaxscope.log.reader import Reader
class Follower:
    def __init__(self, run):
        self.reader = Reader(run)
    def poll(self):
        return [f"live: {type(e).__name__} of {e.function}" for e in self.reader.poll() if hasattr(e, "function")]
live = types.ModuleType("jaxscope.report.live"); live.Follower = Follower
text = types.ModuleType("jaxscope.report.text"); text.summary = lambda run, parts, **_: f"summary of {run.name}"
jaxscope.report.text, jaxscope.report.live = text, live
sys.modules.update({"jaxscope.report.text": text, "jaxscope.report.live": live})
from jaxscope.cli import main
main()
"""

# A program that records one miss, and then as many as it is told on stdin.
RECORDS = """
import json, os, sys, jax
def miss(n):
    path = os.path.join(os.environ["JAXSCOPE_RUN"], "events", f"{os.getpid()}-stub.jsonl")
    with open(path, "a") as f:
        f.write(json.dumps({"kind": "Missed", "function": f"f{n}", "pid": os.getpid()}) + "\\n")
miss(0)
for n, _ in enumerate(iter(sys.stdin.readline, ""), 1):
    miss(n)
"""


@pytest.fixture
def jaxscope(place):
    """``place.run``, with stand-ins for the reading wing."""
    place.fake_jax()
    launcher = place.program("launcher/readers.py", READERS)

    def run(*words, **how):
        process = place.start(*words, plain=True, **how)
        return process

    return lambda *words, **how: run(launcher, *words, **how)


def said(place, *words, **how):
    ours = place.run(*words, **how)
    return ours.returncode, ours.stderr


def test_a_recorded_run_ends_with_its_summary(place, jaxscope):
    out, err = jaxscope("run", place.program("train.py", RECORDS)).communicate(timeout=20)
    assert (out, err) == ("", "summary of train\n")


def test_quiet_says_nothing(place, jaxscope):
    assert jaxscope("run", "-q", place.program("a.py", RECORDS)).communicate(timeout=20) == ("", "")


def test_the_summary_comes_before_the_signal_that_ends_us(place, jaxscope):
    process = jaxscope("run", place.program("a.py", RECORDS + "os.abort()"))
    assert process.communicate(timeout=20)[1] == "summary of a\n"
    assert process.returncode == -6


def test_a_summary_that_fails_is_one_line_and_where_the_run_is(place):
    launcher = place.program("launcher/broken.py", READERS.replace('f"summary of {run.name}"', "1/0"))
    place.fake_jax()
    out = place.run(launcher, "run", place.program("a.py", RECORDS), plain=True)
    assert out.returncode == 0
    name = place.latest.path.name
    assert out.stderr == (
        f"jaxscope: recorded in {place.latest.path}, but the summary failed: ZeroDivisionError: division by zero\n"
        f"  jaxscope report {name}\n"
    )


def test_a_program_without_jax(place):
    code, err = said(place, "-c", "print(1)")
    assert code == 0
    assert err.startswith("jaxscope: nothing was recorded: the program did not import jax\n  ")


def test_a_program_that_crashes_before_it_imports_jax(place):
    code, err = said(place, place.program("a.py", "1/0"))
    assert code == 1
    assert err.endswith(
        "jaxscope: nothing was recorded: the program ended with exit code 1 before it imported jax\n"
    )


def test_a_program_that_crashes_before_its_first_compilation(place):
    place.fake_jax()
    code, err = said(place, place.program("a.py", "import jax\nraise SystemExit(3)"))
    assert (code, err) == (3, "jaxscope: the program ended with exit code 3 before its first compilation\n")


def test_a_program_that_compiles_nothing(place):
    place.fake_jax()
    code, err = said(place, place.program("a.py", "import jax"))
    assert (code, err) == (
        0,
        "jaxscope: the program imported jax but compiled nothing, so there is nothing to report\n",
    )


def test_a_program_killed_while_jax_was_imported(place):
    place.fake_jax()
    place.program("jaxscope/capture/session.py", "import os; os.kill(os.getpid(), 9)")
    code, err = said(place, place.program("a.py", "import jax"))
    assert (code, err) == (
        -9,
        "jaxscope: nothing was recorded: the program ended with SIGKILL while it imported jax\n",
    )


def test_jax_imported_where_jaxscope_is_not_installed(place):
    place.fake_jax()
    place.program("jaxscope/capture/session.py", "raise ModuleNotFoundError(name='jaxscope')")
    code, err = said(place, place.program("a.py", "import jax"))
    assert code == 0
    assert "jaxscope is not installed in the environment whose Python imported jax\n  install it there" in err


def test_a_worker_that_records_is_enough(place):
    place.fake_jax()
    place.program("worker.py", "import jax")
    program = place.program("a.py", "import subprocess, sys\nsubprocess.run([sys.executable, sys.argv[1]])")
    assert "compiled nothing" in said(place, program, place.path / "worker.py")[1]


@pytest.mark.parametrize("flag", ["-I", "-E", "-S"])
def test_a_python_that_ignores_our_start_up_file(place, flag):
    if flag == "-S":  # then jaxscope itself is not importable, unless somebody says where it is
        how = {"env": {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p) + f":{HERE.parent.parent}"}}
    else:
        how = {}
    code, err = said(place, "-c", "print(1)", python=[flag], **how)
    assert code == 0
    assert (
        f"python was started with {flag}, which keeps Python from loading jaxscope\n  leave out {flag}" in err
    )


def test_a_missing_script_is_pythons_to_complain_about(place):
    plain, ours = place.run("nowhere.py", plain=True), place.run("nowhere.py")
    assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout) == (2, "")
    assert ours.stderr == plain.stderr
    assert not place.home.exists()  # nothing ran: no run


def test_a_directory_without_a_main_module_is_pythons_to_complain_about(place):
    plain, ours = place.run(place.path, plain=True), place.run(place.path)
    assert (ours.returncode, ours.stderr) == (plain.returncode, plain.stderr)


def test_python_in_front_of_the_script_is_explained(place):
    code, err = said(place, "python3", "train.py", "--lr", "1")
    assert code == 2
    assert err.endswith(
        "jaxscope: jaxscope run starts Python itself: give only the script, without python3:\n  jaxscope run train.py --lr\n"
    ) or err.endswith(
        "jaxscope: jaxscope run starts Python itself: give only the script, without python3:\n  jaxscope run train.py --lr 1\n"
    )


def unwritable(place):
    """A place where no directory can be made, also by root."""
    place.program("file", "")
    return place.path / "file" / "run"


def test_where_nothing_can_be_written_the_program_runs_all_the_same(place):
    program = place.program(
        "a.py", "import os, sys; print('JAXSCOPE_RUN' in os.environ, 'PYTHONPATH' in os.environ); sys.exit(3)"
    )
    ours = place.run("-q", program, env={"JAXSCOPE_HOME": str(unwritable(place))})
    assert (ours.returncode, ours.stdout) == (3, "False False\n")
    assert ours.stderr.startswith("jaxscope: not recording: cannot make the run directory")
    assert ours.stderr.count("\n") == 2
    assert "the program runs without being recorded" in ours.stderr


def test_who_names_the_directory_or_asks_for_a_check_is_refused_before_the_program_starts(place):
    home = {"JAXSCOPE_HOME": str(unwritable(place))}
    (place.path / "sources").mkdir()
    program = place.program("sources/a.py", "print('ran')")
    for words, env, said in (
        (["-o", unwritable(place)], {}, "cannot make the run directory"),
        (["-o", place.path / "sources"], {}, "is not empty and is not a jaxscope run"),
        (["--check", "no-recompiles-after=0"], home, "cannot make the run directory"),
    ):
        ours = place.run("-q", *words, program, env=env)
        assert (ours.returncode, ours.stdout) == (2, "") and said in ours.stderr
    assert [p.name for p in (place.path / "sources").iterdir()] == ["a.py"]


def test_a_directory_that_holds_a_run_is_not_written_over_unless_that_is_requested(place):
    out = place.path / "one"
    place.run("-q", "-o", out, "-c", "pass")
    before = (out / "meta.json").read_text()
    ours = place.run("-q", "-o", out, "-c", "print('ran')")
    assert (ours.returncode, ours.stdout) == (2, "")
    assert "already contains a recorded run" in ours.stderr and "--overwrite" in ours.stderr
    assert (out / "meta.json").read_text() == before
    (out / "mine.txt").write_text("precious")
    ours = place.run("-q", "--overwrite", "-o", out, "-c", "print('ran')")
    assert (ours.returncode, ours.stdout) == (
        2,
        "",
    ) and "contains files that do not belong to the run: mine.txt" in ours.stderr
    (out / "mine.txt").unlink()
    ours = place.run("-q", "--overwrite", "-o", out, "-c", "print('ran')")
    assert (ours.returncode, ours.stdout) == (0, "ran\n")
    assert (out / "meta.json").read_text() != before


def test_in_a_directory_that_is_gone_the_program_runs_as_with_python(place):
    program = place.program("a.py", "import os\ntry: os.getcwd()\nexcept OSError: print('gone')")
    for words in (["-o", str(place.path / "run")], []):
        (place.path / "here").mkdir()
        code = (
            "import os, sys; os.rmdir(os.getcwd())\n"
            f"os.execv(sys.executable, [sys.executable, '-m', 'jaxscope', 'run', '-q', *{words!r}, {program!r}])"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=place.path / "here", env=place.env | {"JAXSCOPE_HOME": ""},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, "gone\n"), done.stderr
        assert not (place.path / "here").exists()
    assert (place.path / "run" / "meta.json").exists() and "not recording" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--chek", "x=1", "a.py"], "unrecognized arguments: --chek"),
        (["--check", "x=1", "a.py"], "--check has no option 'x'"),
        (["--target", "h100:9x9", "a.py"], "one host has 8 GPUs, not 9"),
        (["--target", "v5f:4x4", "a.py"], "unknown target"),
        (["--dry-run", "a.py"], "--dry-run needs a target to compile for"),
        (["-u", "a.py"], "python -u -m jaxscope run"),
        (["-X", "dev", "a.py"], "python -X -m jaxscope run"),
        (["--ir", "some", "a.py"], "invalid choice: 'some'"),
        (["--ir"], "expected one argument"),
        (["-m"], "-m needs a module's name"),
        (["-c"], "-c needs the code"),
        (["-q"], "nothing to run"),
        (["--"], "nothing to run"),
    ],
)
def test_a_command_line_that_makes_no_sense_starts_nothing(place, words, message):
    ours = place.run(*words)
    assert (ours.returncode, ours.stdout) == (2, "")
    assert message in ours.stderr
    assert ours.stderr.startswith("jaxscope: ")
    assert ours.stderr.count("\n") <= 2
    assert not place.home.exists()


def test_help_teaches(place):
    ours = place.run("--help")
    assert ours.returncode == 0
    for word in ("examples:", "jaxscope run train.py", "--live", "--detach", "jaxscope report", "PYTHONPATH"):
        assert word in ours.stdout
    assert max(map(len, ours.stdout.splitlines())) <= 110


def test_everything_after_the_script_is_the_programs(place):
    code = "import sys; print(sys.argv[1:])"
    theirs = ["--help", "-q", "--live", "-o", "x", "--", "--check", "-m", "--no"]
    program = place.program("a.py", code)
    for words in (
        ["-q", program, *theirs],
        ["-q", "--", program, *theirs],
        ["-q", "-c", code, *theirs],
        ["-q", f"-c{code}", *theirs],
        ["--no-tui", "-q", "--ir=none", "--name=-x", program, *theirs],
    ):
        ours = place.run(*words)
        assert ours.stdout == f"{theirs}\n", ours.stderr
    assert place.latest.name == "-x"


def test_live_prints_while_the_program_runs_and_to_its_end(place, jaxscope):
    process = jaxscope("run", "-q", "--live", place.program("a.py", RECORDS), stdin=-1)
    assert process.stderr.readline() == "live: Missed of f0\n"
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stderr.readline() == "live: Missed of f1\n"
    assert process.communicate("\n\n", timeout=20)[1] == "live: Missed of f2\nlive: Missed of f3\n"


def test_live_that_fails_says_so_and_the_program_goes_on(place):
    place.fake_jax()
    launcher = place.program("launcher/broken.py", READERS.replace("return [f", "1/0; return [f"))
    out = place.run(launcher, "run", "-q", "--live", place.program("a.py", RECORDS), plain=True)
    assert out.returncode == 0
    assert (
        out.stderr
        == "jaxscope: --live stopped because of an error: ZeroDivisionError: division by zero; the recording continues\n"
    )


def test_following_a_process_that_is_not_ours(place, jaxscope):
    import time

    run = place.path / "r"
    (run / "events").mkdir(parents=True)
    env = {"JAXSCOPE_RUN": str(run), "JAXSCOPE_OPTIONS": "{}"}
    program = place.start(place.program("a.py", RECORDS), plain=True, stdin=-1, env=env)
    process = jaxscope("_follow", run, program.pid)
    assert process.stderr.readline() == "live: Missed of f0\n"
    assert process.poll() is None
    process.send_signal(2)  # Ctrl-C: the program decides what becomes of it
    time.sleep(0.2)
    program.communicate("\n", timeout=20)
    assert process.communicate(timeout=20)[1] == "live: Missed of f1\n"
    assert process.returncode == 0


def test_tee_keeps_stderr_and_passes_it_on(place):
    program = place.program(
        "a.py",
        "import os, sys; print(os.isatty(2)); os.write(2, b'a\\r\\nb\\n\\xff'); sys.stdout.flush(); sys.exit('end')",
    )
    process = place.start("-q", "--tee-stderr", program)
    out, err = process.stdout.buffer.read(), process.stderr.buffer.read()
    assert process.wait() == 1
    assert (out, err) == (b"False\n", b"a\r\nb\n\xffend\n")
    assert place.latest.output.read_bytes() == err


def test_tee_of_much_loses_nothing(place):
    program = place.program(
        "a.py", "import sys\nfor n in range(50000): print(n, file=sys.stderr)\nsys.exit(2)"
    )
    ours = place.run("-q", "--tee-stderr", program)
    assert ours.returncode == 2
    assert ours.stderr == "".join(f"{n}\n" for n in range(50000)) == place.latest.output.read_text()


def test_tee_on_a_terminal_is_a_terminal_of_the_same_size(place):
    import pty
    import struct
    import termios
    from fcntl import ioctl

    program = place.program(
        "a.py",
        "import os, sys; print(os.isatty(2), os.get_terminal_size(2), file=sys.stderr)\nsys.stderr.write('x' * 20000 + chr(10))",
    )
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    process = place.start("-q", "--tee-stderr", program, stderr=theirs)
    os.close(theirs)
    seen = b""
    try:
        while data := os.read(ours, 4096):
            seen += data
    except OSError:  # the end of a pseudo-terminal, on Linux
        pass
    os.close(ours)
    assert process.wait() == 0
    expected = "True os.terminal_size(columns=77, lines=33)\n" + "x" * 20000 + "\n"
    assert place.latest.output.read_text() == expected
    assert seen.decode() == expected.replace("\n", "\r\n")  # the real terminal adds them, once


def test_a_child_that_outlives_the_program_can_go_on_writing_through_the_tee(place):
    program = place.program(
        "a.py",
        """
        import subprocess, sys
        child = "import os, sys, time\\nwhile not os.path.exists('go'): time.sleep(0.05)\\nprint('late', file=sys.stderr)"
        subprocess.Popen([sys.executable, "-c", child])
        """,
    )
    process = place.start("-q", "--tee-stderr", program, cwd=place.path)
    assert process.wait(60) == 0  # we do not wait for the child
    (place.path / "go").touch()
    assert process.stderr.read() == "late\n"
    assert Path(place.latest.output).read_text() == "late\n"
