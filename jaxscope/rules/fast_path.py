"""Rules JX123 to JX127: calls that compile nothing and yet are slow, because they miss JAX's fast path (the
dispatch in C++ that needs no Python), or because they have very many arguments."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from operator import itemgetter

from jaxscope.analysis.causes import REF_EFFECTS
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.rules.each_program import users
from jaxscope.rules.host_callbacks import host_callback
from jaxscope.rules.recompiles import Group, finding, groups, than
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, NOTE, WARNING, Evidence, Finding, Fix
from jaxscope.schema.messages import Count, Message, Names, message

MANY, VERY_MANY = 64, 256  # numbers in one list for a note, for a warning
LISTS = 3  # further lists that the finding names
_NUMBERS = frozenset({"int", "float", "bool", "complex", "numpy.int64", "numpy.float64", "numpy.float32"})
_ITEM = re.compile(r"\[\d+\]$")  # the last step of a path, if it is a position in a list
ARGUMENTS = "the arguments"  # in advice, if it is unknown which argument made the calls miss
FEW = 2  # misses of one program that are normal: the first call with each kind of argument misses


def _found(
    run: Run, code: str, kind: str, fix: Callable[[str | None], Fix], few: int = FEW
) -> Iterator[Finding]:
    """Yield a finding with the code ``code`` for each of the user's functions whose calls missed the fast
    path (JAX's dispatch in C++) more often than is normal; one for each argument that caused the misses.

    Args:
      kind: the kind of cause, such as ``effects``.
      fix: returns the advice, given the path of an argument; None: unknown.
      few: how many misses are normal for each program, or for each function object if there are more.
    """
    for group in groups(run, (kind,), fast_path=True):
        n = group.function.fast_path_misses
        # Every call of a function with Refs misses the fast path, which cannot be avoided.
        if n > few * _programs(group) and not (kind == "effects" and _of_refs(group)):
            title = _title(run, group, n)
            yield finding(run, code, NOTE, group, fix(group.cause.path), title)


@rule("JX127", "numbers-as-arguments", WARNING)
def numbers_as_arguments(run: Run) -> Iterator[Finding]:
    """Yield one finding about the longest list of numbers among the arguments of calls, with the names of
    other long lists."""
    largest: dict[tuple[str, str], tuple[int, str, Compilation]] = {}  # by function and path
    for c in run.compilations.values():
        for path, n in _numbers(c).items() if c.entry == "call" and c.function.user else ():
            same = c.function.id, path
            largest[same] = max(largest.get(same, (0, path, c)), (n, path, c), key=itemgetter(0))
    if not largest:
        return
    (n, path, c), *others = sorted(largest.values(), key=itemgetter(0), reverse=True)
    lists = Names(tuple(f"{path} of {c.function.display_name}" for _, path, c in others), LISTS)
    also = message("numbers-also", lists=lists) if others else None
    text = message("numbers-as-arguments", function=c.function.display_name, path=path, n=n, also=also)
    yield Finding(
        code="JX127",
        severity=WARNING if n >= VERY_MANY else NOTE,
        certainty=CERTAIN,
        title=text,
        function=c.function.id,
        source=c.site,
        evidence=[Evidence(text, compilation=c.id, source=c.site, step=c.step)],
        fix=Fix(message("fix-numbers-as-array"), "asarray", {"path": path}),
        path=path,
    )


def _numbers(c: Compilation) -> dict[str, int]:
    """Return path -> number of Python and NumPy numbers for each list among the arguments of the call ``c``
    that has at least MANY of them and nothing else. For a list of equally long lists, the path is that of the
    outer list."""
    leaves = c.key.arguments if c.key is not None else ()
    total, numbers = Counter[str](), Counter[str]()
    for leaf in leaves:
        path = _ITEM.sub("", leaf.path)
        while path and path != leaf.path:
            total[path] += 1
            numbers[path] += leaf.type in _NUMBERS
            path, inside = _ITEM.sub("", path), path
            if path == inside:
                break
    inner: dict[str, set[int]] = {}  # list -> lengths of the lists in it
    for path, n in total.items():
        inner.setdefault(_ITEM.sub("", path), set()).add(n)
    lists = [
        path
        for path, n in numbers.items()
        if n >= MANY and n == total[path] and len(inner.get(path, set()) - {n}) <= 1
    ]
    return {
        path: numbers[path] for path in lists if _ITEM.sub("", path) not in lists or not _ITEM.search(path)
    }


def _programs(group: Group) -> int:
    """Return the number of function objects that the function of ``group`` had, or of its compilations if
    these are more; at least 1."""
    known = {c.key.function_object for c in group.function.compilations if c.key is not None} - {None}
    return max(1, len(known), sum(c.compiled is not None for c in group.function.compilations))


def _title(run: Run, group: Group, calls: int) -> Message:
    return message(
        "off-fast-path",
        function=group.name,
        calls=Count(calls, "call"),
        cause=group.cause,
        than=than(run, group.compilations[-1]),
    )


def _of_refs(group: Group) -> bool:
    """Return whether the only effects of the function of ``group`` are reading and writing ``jax.Ref``."""
    found = {
        e.partition("<")[0]
        for c in group.compilations
        if c.missed is not None
        for e in c.missed.effects or ()
    }
    found |= {
        e.partition("<")[0] for c in group.function.compilations if c.traced for e in c.traced.effects or ()
    }
    return bool(found) and found <= REF_EFFECTS


@rule("JX123", "mixed-argument-kinds", NOTE)
def mixed_argument_kinds(run: Run) -> Iterator[Finding]:
    """Yield findings about functions off the fast path because an argument's Python type changes (NumPy,
    JAX)."""
    yield from _found(
        run,
        "JX123",
        "argument_kind",
        lambda path: Fix(message("fix-asarray", path=path or ARGUMENTS), "asarray", {"path": path}),
    )


@rule("JX124", "respelled-sharding", NOTE)
def respelled_sharding(run: Run) -> Iterator[Finding]:
    """Yield findings about functions off the fast path because of equal, but new sharding objects."""

    def fix(path: str | None) -> Fix:
        return Fix(message("fix-one-sharding-object", path=path or ARGUMENTS), "create_once", {"path": path})

    yield from _found(run, "JX124", "equal_sharding", fix, 1)


@rule("JX125", "effects", NOTE)
def effects(run: Run) -> Iterator[Finding]:
    """Yield findings about functions off the fast path because of effects, such as callbacks. Functions that
    JX301 reports and those with rare callbacks are left out."""
    left_out = {f.function for f in host_callback(run)}  # JX301 has the advice for these
    for _, f, texts in users(run):
        found = texts.stablehlo.callbacks if texts.stablehlo is not None else ()
        if found and all(c.in_branch and c.kind != "debug_print" for c in found):
            left_out.add(f.id)  # for example an error check: it is there on purpose, and may never run
    fix = Fix(message("fix-remove-callbacks"), "remove_callbacks")
    for one in _found(run, "JX125", "effects", lambda _: fix):
        if one.function not in left_out:
            yield one


@rule("JX126", "full-cache", WARNING, slow=True)
def full_cache(run: Run) -> Iterator[Finding]:
    for group in groups(run, ("evicted",), fast_path=True):
        title = message("evicted-from-fast-path", function=group.name, cause=group.cause)
        yield finding(run, "JX126", WARNING, group, Fix(message("fix-fewer-signatures")), title)
