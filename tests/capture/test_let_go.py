"""Arrays are gone at once when the program lets them go: no cycle of ours has them wait for the collector."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from folders import PROGRAMS

import jaxscope

PACKAGE = Path(jaxscope.__file__).parent
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def circles(source: str) -> list[str]:
    """Local names of functions that lead back to themselves through what nested functions refer to.

    Such a function is in a cycle with all it refers to, each time the one around it has run.
    """
    found = []
    for scope in ast.walk(ast.parse(source)):
        if not isinstance(scope, FUNCTIONS) or isinstance(scope, ast.Lambda):
            continue
        leads: dict[str, set[str]] = {}
        functions = set()
        for node in _own(scope):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                leads.setdefault(node.name, set()).update(_named(node))
                functions.add(node.name)
                if isinstance(node, ast.ClassDef):
                    leads[node.name].add(node.name)  # its __mro__
            elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        leads.setdefault(target.id, set()).update(_named(node.value))
                        if any(isinstance(n, ast.Lambda) for n in ast.walk(node.value)):
                            functions.add(target.id)
        found += [f"{scope.name}: {name}" for name in sorted(functions) if name in _beyond(name, leads)]
    return found


def _own(scope: ast.AST):
    """The nodes of a function without those of the functions in it (these themselves are)."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            yield from _own(child)


def _named(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _beyond(name: str, leads: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    todo = list(leads[name])
    while todo:
        if (one := todo.pop()) not in seen:
            seen.add(one)
            todo += leads.get(one, ())
    return seen


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("def walk(v):\n  for x in v: walk(x)", ["f: walk"]),
        ("def a(): b()\n def b(): a()", ["f: a", "f: b"]),
        ("g = lambda n: g(n - 1)", ["f: g"]),
        ("def a(): return kept\n kept = [a]", ["f: a"]),
        ("class C: pass", ["f: C"]),
        ("def a(v): return v\n def b(v): return a(v)\n n = 1\n n = n + 1", []),
    ],
)
def test_a_nested_function_that_leads_to_itself_is_found(body, expected):
    assert circles(f"def f():\n {body}") == expected


@pytest.mark.parametrize("room", ["capture", "log", "launch"])
def test_no_nested_function_leads_to_itself_where_values_are_seen(room):
    for path in (PACKAGE / room).rglob("*.py"):
        assert circles(path.read_text()) == [], path
    for name in ("api.py", "guard.py"):
        assert circles((PACKAGE / name).read_text()) == [], name


@pytest.mark.capture
@pytest.mark.costly
@pytest.mark.long
def test_states_of_all_libraries_are_gone_at_once_as_in_an_unrecorded_program(record):
    run = record(PROGRAMS / "let_go.py", env={"XLA_FLAGS": "--xla_force_host_platform_device_count=2"})
    assert run.out == "cycles: []\n", run.out
