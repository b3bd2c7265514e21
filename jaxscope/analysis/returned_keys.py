"""Find functions that draw random numbers from a key of ``jax.random`` and return the same key as the next
one, in the text of a Python file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from jaxscope.analysis.key_reuse import NO_DRAW, Draws, key_of, name_around
from jaxscope.analysis.syntax import CONDITIONALS, FUNCTION, bind, is_name, last_name, positional, syntax


class ReturnedKey(NamedTuple):
    """A key from which a function draws and which it returns, and from which its next call draws again.

    Attributes:
      function: the function.
      key: the variable that it draws from and returns.
      drawn: the line of this draw.
      parameter: the parameter from which the function draws, too.
      again: the line of that draw.
      call: the line of a call that passes the returned key as ``parameter`` the next time.
      caller: the function that contains this call.
    """

    function: str
    key: str
    drawn: int
    parameter: str
    again: int
    call: int
    caller: str


def find(source: str | None) -> list[ReturnedKey]:
    """Return the keys from which a function of ``source`` draws and which it then returns, where a call such
    as ``x, key = act(key)`` passes the returned key to the next call, which draws from the same key."""
    found = syntax(source)
    if "random" not in (source or ""):
        return []
    draws, result = Draws(found.imports), list[ReturnedKey]()
    assigned = [
        n for n in ast.walk(found.tree) if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call)
    ]
    for function in found.blocks:
        if not isinstance(function, ast.FunctionDef):
            continue
        drawn = dict(reversed([*_drawn(function, draws)]))  # the first draw from each variable
        own = [p for p in positional(function) if p in drawn and not _set_before(function, p, drawn[p])]
        for position, key in _returned(function):
            for call in assigned if key in drawn and own else ():
                target = _element(call.targets[0], position)
                passed = _parameter_of(call.value, function, target) if target is not None else None
                if passed in own and not (
                    passed == key and _set_before(function, key, function.end_lineno or 0)
                ):
                    caller = name_around(found, call.lineno)
                    lines = drawn[key], drawn[passed]
                    result.append(
                        ReturnedKey(function.name, key, lines[0], passed, lines[1], call.lineno, caller)
                    )
                    break
    return result


def _drawn(function: ast.FunctionDef, draws: Draws) -> Iterator[tuple[str, int]]:
    """Yield (variable, line) for each draw of ``function`` from a variable, in the order of the source. A
    function in a branch of ``cond`` or ``switch`` draws from the operand that it gets."""
    calls = [n for n in ast.walk(function) if isinstance(n, ast.Call)]
    for call in sorted(calls, key=lambda n: (n.lineno, n.col_offset)):
        key = key_of(call) if draws.name(call) not in (None, *NO_DRAW) else None
        if key is not None:
            yield key, call.lineno
        elif last_name(call.func) in CONDITIONALS:
            branches = [n for n in ast.walk(call) if isinstance(n, ast.Lambda)]
            operands = call.args[-len(branches[0].args.args) :] if branches and branches[0].args.args else []
            for k, operand in enumerate(operands):
                named = {b.args.args[k].arg for b in branches if k < len(b.args.args)}
                inside = [n for b in branches for n in ast.walk(b.body) if isinstance(n, ast.Call)]
                if isinstance(operand, ast.Name) and any(
                    draws.name(n) not in (None, *NO_DRAW) and key_of(n) in named for n in inside
                ):
                    yield operand.id, call.lineno


def _set_before(function: ast.FunctionDef, name: str, line: int) -> bool:
    """Return whether ``function`` assigns to the variable ``name`` before ``line``."""
    stored = (n for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return any(n.id == name and n.lineno < line for n in stored)


def _returned(function: ast.FunctionDef) -> list[tuple[int, str]]:
    """Return (position, variable) for the variables in the tuple that ``function`` returns; empty if it
    returns something else, or has several ``return`` statements."""
    inner = {
        n for f in ast.walk(function) if isinstance(f, FUNCTION) and f is not function for n in ast.walk(f)
    }
    returns = [n for n in ast.walk(function) if isinstance(n, ast.Return) and n not in inner]
    value = returns[0].value if len(returns) == 1 else None
    elements = value.elts if isinstance(value, ast.Tuple) else []
    return [(k, n.id) for k, n in enumerate(elements) if isinstance(n, ast.Name)]


def _element(target: ast.expr, position: int) -> str | None:
    """Return the variable at ``position`` of the assignment's ``target``, a tuple; None if there is none."""
    if not isinstance(target, ast.Tuple) or any(isinstance(e, ast.Starred) for e in target.elts):
        return None
    at = target.elts[position] if position < len(target.elts) else None
    return at.id if isinstance(at, ast.Name) else None


def _parameter_of(call: ast.expr, function: ast.FunctionDef, variable: str) -> str | None:
    """Return the parameter of ``function`` as which ``call`` passes ``variable``; None if it calls another
    function or does not pass it."""
    if not isinstance(call, ast.Call) or last_name(call.func) != function.name:
        return None
    passed = bind(call, function)
    return next((p for p, v in passed if is_name(v, variable)), None)
