"""The user's source files: what is taken from them is read and parsed once."""

import ast

import pytest

from jaxscope.model import sources


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
    found = [sources.where_called(str(file), f"f{n % 7}", n + 2) for n in range(3_000)]
    assert found == [(line, True) for line in range(2, 3_002)]
    assert len(parsed) == 1


def test_a_file_that_is_no_python_is_parsed_once(tmp_path, parsed):
    file = tmp_path / "broken.py"
    file.write_text("def (\n")
    assert {sources.where_called(str(file), "f", n) for n in range(2_000)} == {None}
    assert len(parsed) == 1
