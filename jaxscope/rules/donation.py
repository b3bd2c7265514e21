"""Rules JX505 (a donated argument that XLA cannot reuse) and JX507 (a large array that is a constant of the
program): memory that a program uses for nothing."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator

from jaxscope.analysis import numpy_draws
from jaxscope.analysis.paths import root
from jaxscope.analysis.programs import Texts
from jaxscope.analysis.stablehlo.constants import Constant
from jaxscope.analysis.syntax import syntax
from jaxscope.model import sources
from jaxscope.model.records import Function, Program
from jaxscope.model.run import Run
from jaxscope.rules.each_program import of_compiled, users
from jaxscope.rules.finding_parts import MIB, MOST, about, and_more, small
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, WARNING, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Bytes, Field, Message, Names, message

FEW_BYTES = 1024  # fewer bytes that are not reused do not matter


@rule("JX505", "unused-donation", WARNING)
def unused_donation(run: Run) -> Iterator[Finding]:
    yield from of_compiled(run, _unused)


def _unused(p: Program, f: Function, texts: Texts) -> Iterator[tuple[Hashable, Finding]]:
    """Yield at most one pair: the path of the largest donated argument of ``p`` that XLA does not reuse, and
    the finding about all such arguments. Yield nothing if they have few bytes."""
    every = texts.stablehlo.donation if texts.stablehlo is not None else ()
    unused = [d for d in every if d.status == "unused"]
    if sum(d.device_bytes or d.bytes or 0 for d in unused) < max(FEW_BYTES, small(p)):
        return
    first = max(unused, key=lambda d: d.bytes or 0)
    text = message(
        "unused-donation",
        function=f.display_name,
        path=first.path or "argument",
        more=and_more(len(unused)),
        bytes=Bytes(sum(d.bytes or 0 for d in unused)),
        reason=message("unused-donation-reason", reason=first.reason) if first.reason else None,
    )
    yield first.path, _finding("JX505", text, p, f, Fix(message("fix-unused-donation")))


@rule("JX507", "captured-constant", WARNING)
def captured_constant(run: Run) -> Iterator[Finding]:
    """Yield findings about arrays of at least 1 MiB that jitted functions capture as constants. Functions
    that capture the same array have one finding together. Constants with equal elements and random draws are
    left out."""
    found: dict[Hashable, list[tuple[Program, Function, Constant]]] = {}
    for p, f, texts in users(run):
        # Rule JX134 reports draws.
        for c in texts.stablehlo.constants if texts.stablehlo is not None else ():
            if not c.splat and c.bytes is not None and c.bytes >= MIB and not _is_drawn(run, f, c):
                same = (c.name, tuple(c.names), c.bytes, c.source) if c.source is not None else (f.id, id(c))
                found.setdefault(same, []).append((p, f, c))
    for members in found.values():
        (p, f, c), functions = members[0], tuple(dict.fromkeys(g.display_name for _, g, _ in members))
        if c.bytes is not None:
            text = message(
                "captured-constant",
                functions=Names(functions, MOST),
                capture="captures" if len(functions) == 1 else "capture",
                **_fields(c),
            )
            inner = _inner(f, c)
            if inner is not None and len(functions) == 1:
                text = message("captured-inside", inner=inner, function=f.display_name, **_fields(c))
            words = message("fix-pass-as-argument", constant=c.name or "the array")
            if inner is not None and c.name is not None:
                words = message("fix-pass-on", constant=c.name, function=f.display_name, inner=inner)
            if c.name is not None and not _is_written(run, f, root(c.name)):
                words = message("fix-pass-inner", constant=c.name, function=f.display_name)
            fix = Fix(words, "pass_argument", {"name": c.name})
            yield _finding("JX507", text, p, f, fix, c.source)


def _is_drawn(run: Run, f: Function, c: Constant) -> bool:
    """Return whether ``c`` is an array without a name from a function that draws random numbers with NumPy
    while ``f`` is traced."""
    if c.name is not None or c.source is None or f.seen.file is None or f.seen.line is None:
        return False
    drawn = numpy_draws.find(sources.of(run)(f.seen.file), f.seen.name, f.seen.line)
    return drawn is not None and c.source.function.rpartition(".")[2] == drawn.function


def _fields(c: Constant) -> dict[str, Field]:
    unnamed = message("one-of", names=Names(c.names)) if c.names else message("unnamed-array")
    return {"constant": c.name or unnamed, "bytes": Bytes(c.bytes or 0)}


def _inner(f: Function, c: Constant) -> str | None:
    """Return the name of the function that uses the constant ``c``, if ``f`` only calls that function. None
    if ``f``, a function defined in ``f`` or a lambda uses ``c``, or if this is unknown."""
    if c.source is None or c.source.function == "<module>":
        return None
    parts = c.source.function.split(".")
    if f.seen.name in parts or f.seen.name == "<lambda>" or parts[-1].startswith("<"):
        return None
    return c.source.function.replace(".<locals>", "")


def _is_written(run: Run, f: Function, name: str) -> bool:
    """Return whether the variable or attribute ``name``, which the trace of ``f`` captured, occurs in the
    file of ``f``. True if the file cannot be read."""
    source = sources.of(run)(f.seen.file) if f.seen.file is not None else None
    found = syntax(source)
    if not found.tree.body:
        return True
    nodes = ast.walk(found.tree)
    return any(name in (getattr(n, "id", None), getattr(n, "attr", None)) for n in nodes)


def _finding(
    code: str, text: Message, p: Program, f: Function, fix: Fix, source: Frame | None = None
) -> Finding:
    line = source or p.compilations[-1].site
    return Finding(code, WARNING, CERTAIN, **about(p, f, text, line), fix=fix)
