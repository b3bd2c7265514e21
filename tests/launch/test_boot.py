"""The start-up file: what it does around ``import jax``, and that it leaves nothing behind."""

import os
import subprocess
import sys

import pytest

from jaxscope.launch.command import BOOT

LOOK = """
import sys
def look():
    import jax
    spec = jax.__spec__
    return [type(spec).__name__, spec.name, spec.origin, spec.cached, spec.submodule_search_locations,
            type(spec.loader).__name__, sorted(vars(spec.loader).items()), jax.__loader__ is spec.loader,
            jax.__file__, jax.__path__, jax.__package__, sorted(k for k in vars(jax)),
            [getattr(f, "__name__", type(f).__name__) for f in sys.meta_path]]
"""


def both(place, program, *args):
    plain, ours = place.run(program, *args, plain=True), place.run("-q", program, *args)
    assert (ours.returncode, ours.stdout, ours.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    return ours


def recorded(place):
    return len(place.events("RunStarted"))


def test_jax_looks_as_if_nobody_had_watched_its_import(place):
    place.fake_jax()
    both(place, place.program("a.py", LOOK + "print(look())"))
    assert recorded(place) == 1


@pytest.mark.capture
def test_the_real_jax_looks_as_if_nobody_had_watched_its_import(place):
    both(place, place.program("a.py", LOOK + "print(look())"))


def test_asking_whether_jax_is_installed_does_not_lose_the_recording(place):
    place.fake_jax()
    program = place.program(
        "a.py",
        """
        import importlib.util, sys
        spec = importlib.util.find_spec("jax")
        print(spec.origin, type(spec.loader).__name__, spec.loader.get_filename(), "jax" in sys.modules)
        import jax
        print(jax.__spec__.origin == spec.origin, importlib.util.find_spec("jax") is jax.__spec__)
        """,
    )
    both(place, program)
    assert recorded(place) == 1


def test_a_lazy_loader_that_executes_jax_itself_is_seen(place):
    place.fake_jax()
    program = place.program(
        "a.py",
        """
        import importlib.util, sys
        spec = importlib.util.find_spec("jax")
        spec.loader = importlib.util.LazyLoader(spec.loader)
        jax = importlib.util.module_from_spec(spec)
        sys.modules["jax"] = jax
        spec.loader.exec_module(jax)
        print("not yet")
        print(jax.whole, type(jax).__name__)
        """,
    )
    both(place, program)
    assert recorded(place) == 1


def test_jax_from_a_zip_file_is_seen(place):
    import zipfile

    place.fake_jax()
    with zipfile.ZipFile(place.path / "lib.zip", "w") as z:
        for name in ("__init__.py", "part.py"):
            z.write(place.path / "jax" / name, f"jax/{name}")
            (place.path / "jax" / name).unlink()
    (place.path / "jax").rmdir()
    both(
        place,
        place.program(
            "a.py", f"import sys; sys.path.insert(0, {str(place.path / 'lib.zip')!r})\n{LOOK}print(look())"
        ),
    )
    assert recorded(place) == 1


def test_a_finder_of_the_users_that_asks_all_the_others_works(place):
    place.fake_jax()
    program = place.program(
        "a.py",
        """
        import sys
        class Asks:
            def find_spec(self, name, path=None, target=None):
                if name == "jax":
                    print("asked")
                for finder in sys.meta_path:
                    if finder is not self and (spec := finder.find_spec(name, path, target)):
                        return spec
        sys.meta_path.insert(int(sys.argv[1]), Asks())
        import jax
        print(jax.whole)
        """,
    )
    assert place.run("-q", program, "0").stdout == "asked\nTrue\n"
    assert recorded(place) == 1
    assert place.run("-q", program, "1").stdout == "asked\nTrue\n"
    assert recorded(place) == 1


@pytest.mark.parametrize(
    "body", ["1/0", "import no_such_module", "raise SystemExit('stop')", "raise KeyboardInterrupt", "def f(:"]
)
def test_an_error_while_jax_is_imported_reads_as_without_us(place, body):
    place.fake_jax()
    place.program("jax/__init__.py", body)
    ours = both(place, place.program("a.py", "def f():\n    import jax\nf()"))
    assert ours.returncode != 0
    assert recorded(place) == 0


def test_a_second_attempt_to_import_jax_is_recorded(place):
    place.fake_jax()
    place.program(
        "jax/__init__.py",
        "import jax.part, os\nif 'READY' not in os.environ: raise ImportError\nwhole = True",
    )
    program = place.program(
        "a.py",
        """
        import os
        try:
            import jax
        except ImportError:
            os.environ["READY"] = "1"
        import jax
        print(jax.whole)
        """,
    )
    both(place, program)
    assert recorded(place) == 1


def test_a_warning_while_jax_is_imported_points_to_the_same_line(place):
    place.fake_jax()
    place.program("jax/__init__.py", "import warnings\nwarnings.warn('old', stacklevel=2)\nwhole = True")
    assert "a.py:1" in both(place, place.program("a.py", "import jax")).stderr


def test_reloading_jax_works(place):
    place.fake_jax()
    both(place, place.program("a.py", "import importlib, jax\nprint(importlib.reload(jax) is jax)"))
    assert recorded(place) == 1


def test_a_child_forked_before_the_import_records_by_itself(place):
    place.fake_jax()
    program = place.program("a.py", "import os\nif os.fork():\n    os.wait()\nelse:\n    import jax")
    both(place, program)
    assert recorded(place) == 1


def test_an_error_of_ours_is_one_line_and_the_program_goes_on(place):
    place.fake_jax()
    place.program(
        "jaxscope/capture/session.py", "def start_from_environment():\n    raise ValueError('ours')"
    )
    ours = place.run(place.program("a.py", "import jax; print(jax.whole)"))
    assert (ours.returncode, ours.stdout) == (0, "True\n")
    assert ours.stderr == "jaxscope: not recording: ValueError: ours\n"


def test_an_interrupt_while_we_start_is_the_programs(place):
    place.fake_jax()
    place.program("jaxscope/capture/session.py", "def start_from_environment():\n    raise KeyboardInterrupt")
    program = place.program("a.py", "try:\n    import jax\nexcept KeyboardInterrupt:\n    print('caught')")
    assert place.run("-q", program).stdout == "caught\n"


def test_a_program_that_closed_its_stderr_goes_on_when_we_fail(place):
    place.fake_jax()
    place.program(
        "jaxscope/capture/session.py", "def start_from_environment():\n    raise ValueError('ours')"
    )
    program = place.program("a.py", "import sys\nsys.stderr = None\nimport jax\nprint(jax.whole)")
    assert place.run("-q", program).stdout == "True\n"


def other_pythons():
    """Pythons on this machine in which jaxscope is not installed: the program may start any of them."""
    import shutil

    seen = {}
    for name in ("python3", "python2", *(f"python3.{minor}" for minor in range(6, 15))):
        path = shutil.which(name, path=os.pathsep.join([os.defpath, "/usr/local/bin"]))
        if path and os.path.realpath(path) != os.path.realpath(sys.executable):
            seen[os.path.realpath(path)] = name
    return sorted(seen)


@pytest.mark.parametrize("python", other_pythons())
def test_a_python_without_jaxscope_hears_nothing_of_us(place, python):
    (place.path / "run" / "boot").mkdir(parents=True)
    place.program("jax.py", "whole = True\n")
    code = "import sys, jax; print(jax.whole, [m for m in sys.modules if 'jaxscope' in m or m == 'sitecustomize'])"
    env = {**place.env, "PYTHONPATH": f"{BOOT}:{place.path}", "JAXSCOPE_RUN": str(place.path / "run")}
    ours = subprocess.run([python, "-B", "-c", code], env=env, cwd=place.path, capture_output=True, text=True)
    assert ours.stderr == ""
    assert (
        ours.stdout.startswith("True []" if "2.7" not in python else "(True, []")
        or "sitecustomize" in ours.stdout
    )


def test_without_jaxscope_in_its_environment_a_python_is_left_alone(place):
    place.program("jax.py", "whole = True\n")
    (place.path / "run" / "boot").mkdir(parents=True)
    env = {**place.env, "PYTHONPATH": f"{BOOT}:{place.path}", "JAXSCOPE_RUN": str(place.path / "run")}
    # Without site-packages, but with site.py: as in an environment where jaxscope is not installed.
    code = "import site; site.getsitepackages = lambda *_: []; site.main(); import jax; print(jax.whole)"
    ours = subprocess.run(
        [sys.executable, "-S", "-c", code], env=env, cwd=place.path, capture_output=True, text=True
    )
    assert (ours.returncode, ours.stdout, ours.stderr) == (0, "True\n", "")
    (marks,) = (place.path / "run" / "boot").iterdir()
    assert marks.read_text().splitlines() == ["boot", "jax", "no jaxscope"]


def test_no_run_directory_no_trace(place):
    ours = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; print(type(sys.meta_path[0]).__name__, 'sitecustomize' in sys.modules)",
        ],
        env={**place.env, "PYTHONPATH": str(BOOT)},
        capture_output=True,
        text=True,
    )
    assert "WhenJaxIsImported" not in ours.stdout
    assert ours.stdout.endswith("False\n")
    assert ours.stderr == ""


def test_a_run_directory_that_was_removed_stops_nobody(place):
    place.fake_jax()
    program = place.program(
        "a.py",
        """
        import os, shutil
        shutil.rmtree(os.environ["JAXSCOPE_RUN"])
        try:
            import jax
        finally:
            print(os.path.exists(os.environ["JAXSCOPE_RUN"]))
        """,
    )
    ours = place.run("-q", program)
    assert (ours.returncode, ours.stdout) == (0, "False\n")
