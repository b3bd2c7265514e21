"""One program under plain python and under ``jaxscope run``: what it can see is the same.

The differences that are meant are these, and each is asserted: PYTHONPATH begins with our start-up
directory (so that child processes are followed), JAXSCOPE_RUN and JAXSCOPE_OPTIONS are set, and until jax
has been imported one more finder stands first in sys.meta_path. The parent process is ours.
"""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from launching import HERE, RUN

from jaxscope.launch.command import BOOT

INTROSPECT = HERE / "programs" / "introspect.py"
FINDER = "WhenJaxIsImported"


def both(place, *words, plain_words=None, **how):
    """(under plain python, under jaxscope), finished."""
    return place.run(*(plain_words or words), plain=True, **how), place.run("-q", *words, **how)


def leave_out_what_is_meant(seen, place):
    env = seen["environment"]
    assert env.pop("PYTHONPATH").split(os.pathsep)[0] == str(BOOT)
    assert env.pop("JAXSCOPE_RUN") == str(place.latest.path)
    assert json.loads(env.pop("JAXSCOPE_OPTIONS")) == {}
    assert seen["finders"].pop(0) == FINDER
    seen["group"] = "the starter's"


def assert_same(place, *words, **how):
    plain, ours = both(place, *words, input="one\ntwo\n", **how)
    assert plain.returncode == ours.returncode == 0, ours.stderr
    assert plain.stderr == ours.stderr == "to stderr\n"
    expected, seen = json.loads(plain.stdout), json.loads(ours.stdout)
    group = [place.started[-2].pid, place.started[-1].pid]
    assert [expected["group"], seen["group"]] == group  # each in the group its starter was put into
    expected["group"] = "the starter's"
    expected["environment"].pop("PYTHONPATH", None)
    leave_out_what_is_meant(seen, place)
    for what in expected:
        assert seen[what] == expected[what], what
    assert seen["stdin"] == "one\ntwo\n"
    return seen


def test_a_script_sees_the_same(place):
    seen = assert_same(place, INTROSPECT, "--lr", "0.1", "-q", "--", "--help", "-m", "")
    assert seen["argv"][1:] == ["--lr", "0.1", "-q", "--", "--help", "-m", ""]
    assert seen["path"][0] == str(INTROSPECT.parent)


def test_a_script_with_a_relative_name_sees_the_same(place):
    assert_same(place, "programs/introspect.py", "x")


def test_a_module_sees_the_same(place):
    seen = assert_same(place, "-m", "programs.introspect", "--live", "-o", "x")
    assert seen["argv"][1:] == ["--live", "-o", "x"]


def test_code_on_the_command_line_sees_the_same(place):
    code = INTROSPECT.read_text()
    assert_same(place, "-c", code, "--name", "x")


def test_a_directory_and_a_zip_file_with_a_main_module_see_the_same(place):
    place.program("app/__main__.py", INTROSPECT.read_text())
    assert_same(place, place.path / "app", "x")
    import zipfile

    with zipfile.ZipFile(place.path / "app.zip", "w") as z:
        z.write(place.path / "app" / "__main__.py", "__main__.py")
    assert_same(place, place.path / "app.zip", "x")


def test_a_script_from_stdin_runs(place):
    plain, ours = both(place, "-", "x", input="import sys; print(sys.argv)")
    assert ours.stdout == plain.stdout == "['-', 'x']\n"


def test_the_users_own_pythonpath_and_sitecustomize_are_the_same(place):
    customized = "import sys\nHERE = __name__\nif 'run' not in sys.orig_argv:\n    print('customized')\n"
    place.program("site/sitecustomize.py", customized)
    program = place.program("a.py", "import sitecustomize as s; print(s.HERE, s.__file__, s.__spec__.origin)")
    for path in (f"{place.path}/site", f"{place.path}/nowhere:{place.path}/site:", ""):
        plain, ours = both(place, program, env={"PYTHONPATH": path})
        assert plain.stdout == ours.stdout, path
        assert plain.stderr == ours.stderr, path
        assert ("customized" in ours.stdout) is bool(path)


def test_an_empty_pythonpath_does_not_become_the_current_directory(place):
    program = place.program("a.py", "import sys; print(sys.path)")
    for path in ("", ":"):
        plain, ours = both(place, program, env={"PYTHONPATH": path})
        assert ours.stdout == plain.stdout


@pytest.mark.parametrize(
    "error", ["raise ValueError('mine')", "import no_such_module", "raise SystemExit(4)"]
)
def test_a_sitecustomize_that_fails_fails_the_same(place, error):
    # The runner is a Python of its own and meets the same sitecustomize: not there.
    place.program("site/sitecustomize.py", f"import sys\nif 'run' not in sys.orig_argv:\n    {error}")
    program = place.program("a.py", "import sys; print('sitecustomize' in sys.modules)")
    plain, ours = both(place, program, env={"PYTHONPATH": f"{place.path}/site"})
    assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout)
    if error != "raise SystemExit(4)":  # Python itself dies there with a traceback, through our frame
        assert ours.stderr == plain.stderr
        assert ours.stderr


@pytest.mark.parametrize(
    "flags", [["-O"], ["-W", "error::UserWarning"], ["-X", "utf8"], ["-X", "dev"], ["-b", "-B"], ["-u"]]
)
def test_flags_of_our_python_are_the_programs(place, flags):
    program = place.program(
        "a.py", "import sys; print(sys.flags, sys.warnoptions, sys._xoptions, sys.stdout.write_through)"
    )
    plain, ours = both(place, program, python=flags)
    assert ours.stdout == plain.stdout


ENDINGS = {
    "nothing": "",
    "three": "import sys; sys.exit(3)",
    "message": "import sys; sys.exit('a message')",
    "none": "import sys; sys.exit(None)",
    "large": "import sys; sys.exit(300)",
    "exception": "def f():\n    raise KeyError('mine')\nf()",
    "chain": "try:\n    1/0\nexcept ZeroDivisionError as e:\n    raise OSError('two') from e",
    "syntax": "def f(:\n",
    "interrupt": "raise KeyboardInterrupt",
    "at once": "import os; print('x', flush=True); os._exit(5)",
    "SIGTERM": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "SIGINT": "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
    "SIGKILL": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "SIGSEGV": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    "abort": "import os; os.abort()",
    "realtime": "import os, signal; os.kill(os.getpid(), signal.SIGRTMIN + 1)",
    "at exit": "import atexit, threading; atexit.register(print, 'bye'); threading.Thread(target=print, args=['t']).start()",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_it_ends_as_under_python(place, ending):
    program = place.program("a.py", ENDINGS[ending] + "\n")
    plain, ours = both(place, program)
    assert (ours.returncode, ours.stdout, ours.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    (event,) = place.events("ProgramExited")
    assert (event.exit_code if event.signal is None else -event.signal) == plain.returncode
    assert 0 < event.seconds < 30


def test_no_core_of_ours_is_beside_the_programs(place):
    import resource

    program = place.program("a.py", ENDINGS["SIGSEGV"])
    allow = lambda: resource.setrlimit(
        resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2
    )
    ours = place.run("-q", program, cwd=place.path, preexec_fn=allow)
    assert ours.returncode == -signal.SIGSEGV
    assert len(list(place.path.glob("core*"))) <= 1


CHILDREN = """
import multiprocessing, os, sys

class Mine:
    def __init__(self, x):
        self.x = x

def work(mine):
    import jax
    return mine.x * 2, __name__, sys.argv, sys.path, "sitecustomize" in sys.modules, type(sys.meta_path[0]).__name__

if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
        print(pool.map(work, [Mine(3)])[0])
    import jax
"""


@pytest.mark.parametrize("how", ["spawn", "fork", "forkserver"])
def test_children_of_multiprocessing_work_and_are_followed(place, how):
    place.fake_jax()
    program = place.program("a.py", CHILDREN)
    plain, ours = both(place, program, how)
    assert (ours.stdout, ours.stderr) == (plain.stdout, plain.stderr)
    assert "(6, " in ours.stdout
    assert len({e.pid for e in place.events("RunStarted")}) == 2


def test_a_python_started_by_the_program_is_followed(place):
    place.fake_jax()
    place.program("child.py", "import jax")
    program = place.program(
        "a.py", "import subprocess, sys\nsubprocess.run([sys.executable, sys.argv[1]], check=True)"
    )
    assert place.run("-q", program, place.path / "child.py").returncode == 0
    assert len(place.events("RunStarted")) == 1


def test_a_run_inside_a_run_records_into_its_own_directory(place):
    place.fake_jax()
    inner = place.program("inner.py", "import jax, os; print(os.environ['PYTHONPATH'])")
    outer = place.program(
        "outer.py", "import jax, subprocess, sys\nsys.exit(subprocess.run(sys.argv[1:]).returncode)"
    )
    ours = place.run("-q", outer, *RUN, "-q", inner)
    assert ours.stdout.strip() == str(BOOT)
    assert [len(place.events("RunStarted", run)) for run in place.runs()] == [1, 1]


def test_the_run_directory_says_what_was_run(place):
    program = place.program("train.py", "")
    place.run("-q", "--ir", "stats", "--step-function", "f", program, "--ir", "x")
    meta = place.latest.meta
    assert meta["name"] == "train"
    assert meta["argv"] == [program, "--ir", "x"]
    assert meta["options"] == {"ir": "stats", "step-function": "f"}
    assert place.latest.heartbeat.exists()
    assert place.latest.path.name.startswith("train-")


def test_a_name_and_a_directory_can_be_given(place):
    out = place.path / "out" / "one"
    place.run("-q", f"--out={out}", "--name", "first", "-c", "pass")
    assert json.loads((out / "meta.json").read_text())["name"] == "first"
    assert not place.home.exists()


def test_the_program_runs_in_the_python_of_jaxscope(place):
    assert place.run("-q", "-c", "import sys; print(sys.executable)").stdout.strip() == sys.executable
    assert Path(sys.executable).exists()
