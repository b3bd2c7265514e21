"""The user's source files: what is taken from them is read and parsed once."""

import ast
import hashlib
import os

import pytest

from jaxscope.model import sources
from jaxscope.model.run import Run
from jaxscope.schema import events as ev


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sources.text.cache_clear()


@pytest.fixture
def parsed(monkeypatch):
    """The texts that were parsed."""
    found = []
    parse = ast.parse
    monkeypatch.setattr(ast, "parse", lambda source, *more: found.append(source) or parse(source, *more))
    return found


def test_a_file_is_parsed_once_for_all_its_lines_and_names(tmp_path, parsed):
    file = tmp_path / "many.py"
    file.write_text("import jax\n" + "".join(f"y{n} = jax.jit(f{n % 7})(x)\n" for n in range(3_000)))
    found = [sources.where_called(Run(), str(file), f"f{n % 7}", n + 2) for n in range(3_000)]
    assert found == [(line, True) for line in range(2, 3_002)]
    assert len(parsed) == 1


def test_a_file_that_is_no_python_is_parsed_once(tmp_path, parsed):
    file = tmp_path / "broken.py"
    file.write_text("def (\n")
    assert {sources.where_called(Run(), str(file), "f", n) for n in range(2_000)} == {None}
    assert len(parsed) == 1


def test_a_file_elsewhere_is_shown_only_with_the_content_that_was_recorded(tmp_path_factory):
    file = tmp_path_factory.mktemp("elsewhere") / "id_rsa"
    file.write_text("secret\n")
    recorded = hashlib.sha256(b"secret\n").hexdigest()
    assert sources.text(str(file)) is None
    assert sources.text(str(file), frozenset({"0" * 64})) is None
    assert sources.text(str(file), frozenset({"0" * 64, recorded})) == "secret\n"


def test_the_text_of_a_notebooks_cell_comes_from_the_run():
    run = Run()
    run.apply(ev.SourceSeen(file="In[3]", sha256="0", text="f = jax.jit(lambda x: x)\n"))
    assert sources.of(run)("In[3]") == "f = jax.jit(lambda x: x)\n" and sources.of(run)("In[4]") is None
    assert sources.where_defined(run, "In[3]", "<lambda>", 1) is not None


@pytest.mark.parametrize(
    "name", [".env", ".venv/settings.py", "key.pem", "link.py", "pipe.py", "loop.py", "/proc/self/environ"]
)
def test_of_the_project_only_python_files_in_plain_directories_are_shown(tmp_path, tmp_path_factory, name):
    outside = tmp_path_factory.mktemp("outside") / "their.py"
    outside.write_text("secret\n")
    (tmp_path / ".venv").mkdir()
    for plain in (".env", ".venv/settings.py", "key.pem", "train.py"):
        (tmp_path / plain).write_text("secret\n")
    (tmp_path / "link.py").symlink_to(outside)
    (tmp_path / "loop.py").symlink_to("loop.py")
    os.mkfifo(tmp_path / "pipe.py")
    assert sources.text(name) is None and sources.text(str(tmp_path / name)) is None
    assert sources.text("train.py") == sources.text(str(tmp_path / "train.py")) == "secret\n"


def test_the_project_is_the_nearest_directory_with_a_pyproject(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text("x = 1\n")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep" / "er")
    assert sources.text(str(tmp_path / "train.py")) == "x = 1\n"
    monkeypatch.setenv("HOME", str(tmp_path))
    sources.text.cache_clear()
    assert sources.text(str(tmp_path / "train.py")) is None
