"""Parse the package's own modules, once for all tests that read their code."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator

from folders import TESTS

PACKAGE = TESTS.parent / "jaxscope"


@functools.cache
def _nodes() -> dict[str, dict[type, list[ast.AST]]]:
    """Return, by a module's path below the package, its nodes by their class, in the order of ``ast.walk``."""
    modules = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        by_class: dict[type, list[ast.AST]] = {}
        for node in ast.walk(ast.parse(path.read_text())):
            by_class.setdefault(type(node), []).append(node)
        modules[path.relative_to(PACKAGE).as_posix()] = by_class
    return modules


def nodes(*classes: type, under: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Yield (module's path, node) for each node of ``classes`` in the modules whose path begins with
    ``under``.
    """
    for module, by_class in _nodes().items():
        if module.startswith(under):
            for kind in classes:
                for node in by_class.get(kind, ()):
                    yield module, node
