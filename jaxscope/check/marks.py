"""Check a test against its pytest marks: ``no_recompiles(after=1, functions=None)``, ``max_compilations(n,
function=None)``, ``max_compile_seconds(s)``, ``max_collectives(kind=None, count=None, bytes=None)``.

For each mark there is a function with the same name. It takes the mark's arguments and returns the check, a
function of the recorded run and the compilations of the test. This module does not import pytest.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from jaxscope.check import budgets, gate, limits, program_limits, unknown
from jaxscope.errors import JaxscopeError, UsageError
from jaxscope.model.run import Run
from jaxscope.present import text
from jaxscope.present.escape import escape
from jaxscope.present.findings import title
from jaxscope.report import plain_text
from jaxscope.schema.findings import NOTE, Finding


class Outcome(msgspec.Struct, frozen=True):
    """The result of checking one mark.

    Attributes:
      failure: why the test fails; None: it passes.
      unknown: texts of the notes, such as that a figure was not recorded; empty if the test fails.
      surely: whether the test fails because a limit was exceeded. Then it fails for this reason even if an
        exception ended the test early.
    """

    failure: str | None = None
    unknown: list[str] = []
    surely: bool = False


Judge = Callable[[Run, gate.Part], Outcome]


def no_recompiles(after: int = 1, functions: str | Sequence[str] | None = None) -> Judge:
    """Return a check that the test traces, lowers or compiles nothing after its training step ``after`` (0:
    nothing at all). ``functions`` are names or patterns of the functions to check; None: all.

    Raises:
      UsageError: an argument is invalid.
    """
    if isinstance(after, bool) or not isinstance(after, int) or after < 0:
        raise UsageError(
            f"after={after!r}: the step must be 0, 1, 2, ...", hint="after=0 allows no compilation"
        )
    names = _names("functions", functions)

    def judge(run: Run, part_of_run: gate.Part) -> Outcome:
        return _outcome(gate.of_part(run, after, names, part_of_run))

    return judge


def max_compilations(n: int, function: str | None = None) -> Judge:
    """Return a check that the test compiles functions at most ``n`` times: each function that matches
    ``function``, a name or pattern. None: all of the user's functions together.

    Raises:
      UsageError: an argument is invalid.
    """
    most = _read(limits.count, "n", n)
    names = _names("function", function)

    def judge(run: Run, part_of_run: gate.Part) -> Outcome:
        allowed = limits.Limits(compilations=most)
        if names is None:
            return _outcome(budgets.findings(run, allowed, part_of_run=part_of_run))
        return _outcome(budgets.findings(run, limits.Limits(), dict.fromkeys(names, allowed), part_of_run))

    return judge


def max_compile_seconds(s: float) -> Judge:
    """Return a check that tracing, lowering and compiling take at most ``s`` seconds in the test, for all
    functions together.

    Raises:
      UsageError: ``s`` is invalid.
    """
    most = _read(limits.seconds, "s", s)
    return lambda run, part_of_run: _outcome(
        budgets.findings(run, limits.Limits(seconds=most), part_of_run=part_of_run)
    )


def max_collectives(kind: str | None = None, count: int | None = None, bytes: Any = None) -> Judge:
    """Return a check of the collectives of each program that the test compiles: their number, or their bytes.
    A test that compiles none of the user's functions fails.

    Args:
      kind: ``all-gather``, or ``all-gather@axis`` for one mesh axis; None: all collectives.
      count: the largest number of collectives in a program; one in a loop counts once. None: no limit.
      bytes: the largest number of bytes of the results of the collectives, on one device in one call of a
        program: a number or a text (``"64 MiB"``). None: no limit.

    Raises:
      UsageError: neither limit is given, or an argument is invalid.
    """
    if count is None and bytes is None:
        raise UsageError("give count=, bytes= or both", hint="max_collectives(kind='all-gather', count=2)")
    key = limits.ANY if kind is None else kind
    allowed = limits.Limits(
        collectives=_read(limits.by_kind(limits.count), "count", {key: count}) if count is not None else {},
        collective_bytes=_read(limits.by_kind(limits.size), "bytes", {key: bytes})
        if bytes is not None
        else {},
    )

    def judge(run: Run, part_of_run: gate.Part) -> Outcome:
        compiled = [
            c
            for c in run.compilations.values()
            if c.id in part_of_run and c.reached_phases & 4 and c.function.user
        ]
        if not compiled:
            return Outcome(
                "no function of yours was compiled in this test, so there are no collectives to count\n"
                "    → compile it here: jax.jit(f).lower(...).compile(), or jax.clear_caches() before"
            )
        users = {c.function.id: c.function for c in compiled}
        return _outcome(
            [
                f
                for each in users.values()
                for f in program_limits.of_programs(run, each, allowed, part_of_run)
            ]
        )

    return judge


MARKS: dict[str, Callable[..., Judge]] = {
    "no_recompiles": no_recompiles,
    "max_compilations": max_compilations,
    "max_compile_seconds": max_compile_seconds,
    "max_collectives": max_collectives,
}


def usage(name: str) -> str:
    """Return how to write the mark with this name: ``no_recompiles(after=1, functions=None)``."""
    parameters = inspect.signature(MARKS[name]).parameters.values()
    return f"{name}({', '.join(str(p.replace(annotation=p.empty)) for p in parameters)})"


def read(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Judge:
    """Return the check for the mark ``name`` of a test. ``args`` and ``kwargs`` are the positional and the
    keyword arguments of the mark.

    Raises:
      UsageError: the mark does not accept these arguments; the hint shows how to write it.
    """
    known = inspect.signature(MARKS[name]).parameters
    for word in kwargs:
        if word not in known:
            near = difflib.get_close_matches(word, known, 1, 0.4)
            meant = f"did you mean {near[0]}? " if near else ""
            raise UsageError(f"the mark {name} has no argument {word!r}", hint=f"{meant}usage: {usage(name)}")
    try:
        inspect.signature(MARKS[name]).bind(*args, **kwargs)
    except TypeError as e:
        raise UsageError(f"the mark {name}: {e}", hint=f"usage: {usage(name)}") from None
    try:
        return MARKS[name](*args, **kwargs)
    except UsageError as e:
        raise UsageError(f"the mark {name}: {e.message}", hint=e.hint or f"usage: {usage(name)}") from None


def judged(name: str, judge: Judge, run: Run, part_of_run: gate.Part) -> Outcome:
    """Run ``judge``, the check of the mark ``name``, and return its result. A JaxscopeError raised by the
    check becomes a failure. ``part_of_run`` is a dict: id of a compilation in the test -> its step."""
    try:
        found = judge(run, part_of_run)
    except JaxscopeError as e:
        return Outcome(f"{name}: {e}")
    return msgspec.structs.replace(
        found, failure=None if found.failure is None else f"{name}: {found.failure}"
    )


def _outcome(findings: Sequence[Finding]) -> Outcome:
    """Return the outcome of a mark whose check returned ``findings``: errors and warnings make the test fail;
    notes are its ``unknown`` texts."""
    wrong = [f for f in findings if f.severity != NOTE]
    if wrong:
        return Outcome(plain_text.render(wrong), surely=any(f.code != unknown.CODE for f in wrong))
    notes = [
        title(f) if f.source is None else f"{title(f)} ({escape(text.line(f.source))})" for f in findings
    ]
    return Outcome(None, notes)


def _names(argument: str, value: str | Sequence[str] | None) -> list[str] | None:
    """Return ``value``, a name or a list of names, as a list: ``"step"`` -> ``["step"]``. A function is
    replaced by its ``__qualname__``. None if ``value`` is None. ``argument`` names the mark's argument in the
    error.

    Raises:
      UsageError: ``value`` is something else, or empty.
    """
    if value is None:
        return None
    listed = list(value) if isinstance(value, (list, tuple, set)) else [value]
    found = [v if isinstance(v, str) else getattr(v, "__qualname__", None) for v in listed]
    if not found or any(not isinstance(v, str) or not v.strip() for v in found):
        raise UsageError(
            f"{argument}={value!r} is neither a name nor a list of names", hint=f"{argument}='train_step'"
        )
    return [str(v) for v in found]


def _read(reader: Callable[[Any], Any], name: str, value: Any) -> Any:
    try:
        return reader(value)
    except ValueError as e:
        raise UsageError(f"{name}={value!r} is not {e}") from None
