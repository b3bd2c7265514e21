"""Facts about a library that a line calls outside jit, for the advice of rule JX133."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from jaxscope.analysis.jit_decorators import Jitted, names_of
from jaxscope.analysis.loop_calls import root
from jaxscope.analysis.syntax import calls_at, function_around, last_name, syntax
from jaxscope.model import transfers
from jaxscope.model.payers import Payer
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.schema.findings import Fix
from jaxscope.schema.keys import Frame, same_line
from jaxscope.schema.libraries import COMPUTING_ROOTS, JAX_ROOTS, OF_FUNCTIONS, WRAPPER_ROOTS
from jaxscope.schema.messages import message

RANDOM = frozenset({"random", "prng"})  # JAX's modules of random draws
# Functions of these modules that draw parameters. Under vmap, JAX does not name their module.
DRAWS = frozenset({"_normal", "_normal_real", "_truncated_normal", "_uniform", "_randint", "_bernoulli"})
# Modules of JAX whose functions no method and no operator of an array calls
IMPORTED = RANDOM | {"fft", "scipy", "nn", "image"}


# Methods of scipy.optimize.minimize that use no gradient
_WITHOUT = frozenset({"nelder-mead", "powell", "cobyla", "cobyqa"})


def called_by_scipy(source: str | None, line: int) -> ast.Call | None:
    """Return the call of SciPy that gets the function around ``line`` as an argument: ``minimize(objective,
    x0)``; None if there is none."""
    found = syntax(source)
    around = function_around(found, line)
    if around is None:
        return None
    names = names_of(found.imports, {"scipy"})
    for call in found.all_calls() if names else ():
        if root(call.func) in names and any(last_name(argument) == around.name for argument in call.args):
            return call
    return None


def calls_of_scipy(source: str | None, line: int) -> list[ast.Call]:
    """Return the calls of ``scipy.optimize.minimize`` at ``line``, also if they begin on a line above."""
    names = names_of(syntax(source).imports, {"scipy"})
    calls = calls_at(source, line) if names else ()
    return [c for c in calls if last_name(c.func) == "minimize" and root(c.func) in names]


def without_gradient(call: ast.Call) -> bool:
    """Return whether ``call`` calls ``scipy.optimize.minimize`` with a method that uses a gradient (or is
    unknown), but passes no gradient. False also for more than three positional or for ``**`` arguments."""
    given = {k.arg: k.value for k in call.keywords}
    method = given.get("method")
    named = isinstance(method, ast.Constant) and str(method.value).lower()
    full = last_name(call.func) != "minimize" or len(call.args) > 3 or {"jac", None} & set(given)
    return not full and named not in _WITHOUT


def draws(f: Function) -> bool:
    """Return whether ``f`` is one of JAX's functions that draw random numbers."""
    return _is_of(f, RANDOM, DRAWS)


def computes(run: Run, library: str | None) -> bool:
    """Return whether ``library`` computes with JAX itself: in the run, it jits a function, or calls functions
    of JAX that no method or operator of an array calls, such as random draws."""
    own = any(_package(f) == library for f in run.functions.values() if not f.seen.eager)
    return own or any(
        c.missed is not None and c.missed.library == library and _is_of(c.function, IMPORTED, DRAWS)
        for c in run.compilations.values()
    )


def repeats(p: Payer) -> int:
    """Return how many recompiles on the user's line ``p`` are of functions of a library, not of operations of
    JAX."""
    return sum(not c.function.operation for c in p.again)


def whole_programs(calls: Sequence[Compilation]) -> Sequence[Compilation]:
    """Return those of ``calls`` that compiled more than a single operation: loops and branches outside jit,
    and functions that a library around JAX jits. If there are none, return all ``calls``."""
    own = [c for c in calls if c.function.seen.name in OF_FUNCTIONS or not c.function.operation]
    return own or calls


def jits_itself(p: Payer) -> bool:
    """Return whether the library that the user's line ``p`` calls has jitted functions that this line
    compiled."""
    return any(_package(c.function) == p.library for c in p.compilations if not c.function.seen.eager)


def makes_equinox_modules(run: Run, library: str | None) -> bool:
    """Return whether a function of ``library`` was called under ``equinox.filter_jit``."""
    return any(
        _package(f) == library and "equinox.filter_jit" in f.seen.wrappers
        for f in run.functions.values()
        if library is not None
    )


def reads_values(run: Run, line: Frame, jitted: Jitted) -> bool:
    """Return whether a function reads values of arrays on the host, so that jit cannot trace it.

    Args:
      line: the user's line that calls the function.
      jitted: this call, rewritten with jit around the function.
    """
    return any(
        t.direction == transfers.TO_HOST
        and t.kind not in transfers.NOT_ASKED
        and same_line(t.source, line)
        and t.text is not None
        and jitted.jits(t.text)
        for t in transfers.transfers(run)
    )


def cache_programs(run: Run, p: Payer) -> tuple[Fix | None, float]:
    """Return (the advice to use JAX's persistent compilation cache, the seconds that the cache saves) for the
    user's line ``p``. Return (None, 0.0) if the cache is already used, or if less than half of the line's
    recompiles gave a program that the run had compiled before."""
    again, known, seconds = {c.id for c in p.again}, set[str](), 0.0
    repeated = 0
    for c in run.compilations.values():
        if c.compiled is None or c.compiled.program is None:
            continue
        if c.id in again and c.compiled.program in known and c.compiled.persistent_cache == "off":
            repeated += 1
            seconds += c.compiled.seconds or 0.0
        known.add(c.compiled.program)
    if 2 * repeated < len(p.again):
        return None, 0.0
    return Fix(message("fix-cache-programs", library=p.library), "compilation_cache"), seconds


def package_of(calls: Sequence[Compilation], called: str | None) -> str | None:
    """Return the library to name in a message about ``calls``, which one line of the user caused: the library
    of the function that the last call compiled. If this function belongs to the user, to JAX, or to a library
    of wrappers, return ``called``, the library that the line calls (None: none)."""
    f = calls[-1].function
    package = _package(f) if f.seen.library else ""
    wraps = package in JAX_ROOTS or (package in WRAPPER_ROOTS and package not in COMPUTING_ROOTS)
    return package if package and not wraps else called


def _package(f: Function) -> str:
    """Return the top-level package of ``f``; empty if unknown."""
    return (f.seen.module or "").partition(".")[0]


def _is_of(f: Function, modules: frozenset[str], names: frozenset[str]) -> bool:
    """Return whether ``f`` is a function of JAX from one of ``modules``, or from ``jax`` itself and in
    ``names``."""
    root, *rest = (f.seen.module or "").split(".")
    return root == "jax" and (bool(modules.intersection(rest)) or (not rest and f.seen.name in names))
