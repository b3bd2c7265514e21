"""Rule JX506: an argument that could be donated, so that a result reuses its memory."""

from __future__ import annotations

import ast
import functools
import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from jaxscope.analysis import later_reads, loop_calls
from jaxscope.analysis import sharding as sh
from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.paths import common_prefix, root, split, tokens
from jaxscope.analysis.programs import Texts
from jaxscope.analysis.source_lines import runs_once
from jaxscope.analysis.stablehlo.donation import Donation
from jaxscope.model import sources
from jaxscope.model.records import Compilation, Function, Program
from jaxscope.model.run import Run
from jaxscope.rules import memory_scale
from jaxscope.rules.each_program import of_compiled
from jaxscope.rules.finding_parts import about, and_more, running_share, small
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import LIKELY, NOTE, WARNING, Finding, Fix, fix_of
from jaxscope.schema.messages import Bytes, Message, Names, Words, message

IN_PLACE = "flax.nnx.jit"  # puts the arrays that a call returns into the objects that it was passed
FILTER_JIT = "equinox.filter_jit"  # it has no donate_argnames
PMAP = "jax.pmap"  # it has no donate_argnames
WORTH_ONE_CALL = 0.1  # share of a device's memory: less is not reported for a program that is called once
MOSTLY, COPIED = 0.6, 4 << 20  # for a warning: share of the bytes that a program accesses, and bytes
COMPUTES = 64  # a program with more than one operation for each 64 bytes does not only copy
LARGE = 0.1  # an argument with at least this share of the bytes is named


@rule("JX506", "possible-donation", NOTE)
def possible_donation(run: Run) -> Iterator[Finding]:
    """Yield findings about arguments that could be donated. Under ``nnx.jit``, findings about the same
    objects are merged."""
    found = list(of_compiled(run, functools.partial(_possible, run)))
    largest = max((f for f in found if _updates_in_place(run, f)), key=_donated, default=None)
    for f in found:
        if f is largest:
            yield _with_the_same_objects(run, f, found)
        elif largest is None or not _of_the_same(run, f, largest):
            yield f


def _updates_in_place(run: Run, f: Finding) -> bool:
    """Return whether the function of the finding ``f`` is under ``nnx.jit``, which puts the arrays that a
    call returns into the objects that it was passed."""
    function = run.functions.get(f.function or "")
    return function is not None and IN_PLACE in function.seen.wrappers


def _names(f: Finding) -> list[str]:
    fix = fix_of(f)
    return list(fix.arguments["donate_argnames"]) if fix is not None else []


def _donated(f: Finding) -> float:
    """Return the bytes that the title of ``f`` says could be donated; 0 if unknown."""
    size = f.title.fields.get("bytes") if isinstance(f.title, Message) else None
    return size.bytes if isinstance(size, Bytes) else 0.0


def _of_the_same(run: Run, f: Finding, largest: Finding) -> bool:
    """Return whether the findings ``f`` and ``largest`` are about the same memory: the function of ``f`` is
    under ``nnx.jit``, the advice of ``largest`` names all arguments that the advice of ``f`` names, and their
    ``contexts`` are equal."""
    return _updates_in_place(run, f) and f.contexts == largest.contexts and {*_names(f)} <= {*_names(largest)}


def _with_the_same_objects(run: Run, largest: Finding, findings: Sequence[Finding]) -> Finding:
    """Return the finding ``largest``, extended by the evidence of those other ``findings`` that are about the
    same memory (``_of_the_same``)."""
    others = [f for f in findings if f is not largest and _of_the_same(run, f, largest)]
    if not others:
        return largest
    return msgspec.structs.replace(
        largest, evidence=[*largest.evidence, *(e for f in others for e in f.evidence)]
    )


def _possible(run: Run, p: Program, f: Function, texts: Texts) -> Iterator[tuple[Hashable, Finding]]:
    """Yield at most one pair: the path of the largest array that ``f`` could donate to its program ``p``, and
    the finding about all such arrays."""
    gone = {path: c.fate.seen for c in p.compilations if c.fate is not None for path in c.fate.gone}
    shared = _shared(run, f)
    every = texts.stablehlo.donation if texts.stablehlo is not None else ()
    possible = [d for d in every if d.status == "possible" and d.path is not None]
    needed = _needed(run, f, possible) if shared is not None else _needed(run, f, possible) | _passed_twice(f)
    free = [d for d in possible if d.path in gone and root(d.path or "") not in needed]
    memory = memory_scale.of_program(run, p)
    mostly = _copied_share(p, free)
    if _bytes(free) < max(memory_scale.WORTH_A_NOTE * memory, small(p)) and not mostly:
        return
    if _bytes(free) < WORTH_ONE_CALL * memory and _is_called_once(run, p):
        return
    now = dict.fromkeys(root(d.path) for d in every if d.path and d.status != "possible")
    yield _finding(run, p, f, free, now, shared, mostly)


def _finding(
    run: Run,
    p: Program,
    f: Function,
    free: Sequence[Donation],
    now: Collection[str],
    shared: Shared | None,
    mostly: float,
) -> tuple[Hashable, Finding]:
    """Return (path of the largest array, finding) about the arrays ``free``, which ``f`` could donate to its
    program ``p``. Arguments with a small share of these bytes are left out. The path identifies the finding:
    with an equal path, another program of ``f`` has the same finding.

    Args:
      now: the arguments that ``f`` donates already.
      shared: two variables with the same arrays, one of which has to be copied first; None: there are none.
      mostly: the share of the bytes that the program reads and writes for these arrays and their copies; 0 if
        the share is small or unknown.
    """
    gone = {path: c.fate.seen for c in p.compilations if c.fate is not None for path in c.fate.gone}
    held: Counter[str] = Counter()
    for d in free:
        held[root(d.path or "x")] += _on_a_device(d)
    largest = tuple(name for name, size in held.most_common() if size >= LARGE * held.total())
    names = largest or tuple(held)
    free = [d for d in free if root(d.path or "x") in names]
    first = max(free, key=_on_a_device)
    compiled = p.compilations[-1].compiled
    devices = sh.device_ids(compiled.devices) if compiled is not None else None
    text = message(
        "possible-donation",
        function=f.display_name,
        path=first.path,
        more=and_more(len(free)),
        bytes=Bytes(_bytes(free)),
        each=message("on-each-device") if devices is not None and len(devices) > 1 else None,
        mostly=message("mostly-copies") if mostly else None,
        when=message("program-ended" if gone[first.path or ""] == "exit" else "looked-next"),
    )
    words = _advice(p, f, names, held, tuple(name for name in now if name not in names))
    fix = Fix(words, "donate", {"donate_argnames": list(names)})
    if shared is not None and _passed_twice(f) & {*names}:
        words = _copy_first(shared, fix.words)
        fix = Fix(words, "donate", {**fix.arguments, "copy": shared.copy, "copy_of": shared.original})
    line = p.compilations[-1].site
    return first.path, Finding(
        code="JX506",
        severity=WARNING if mostly else NOTE,
        certainty=LIKELY,
        **about(p, f, text, line),
        fix=fix,
        seconds=running_share(run, f, mostly) if mostly else None,
        at_most=bool(mostly),
    )


def _copied_share(p: Program, free: Sequence[Donation]) -> float:
    """Return the share of the bytes that the program reads and writes for the arrays ``free`` and their
    changed copies. Return 0 if the share is unknown or less than ``MOSTLY``, if the arrays are small, or if
    the program computes much."""
    compiled = p.compilations[-1].compiled
    cost, size = compiled.cost if compiled is not None else {}, _bytes(free)
    if size < COPIED or "flops" not in cost or cost["flops"] > size / COMPUTES:
        return 0.0
    share = 2 * size / cost.get("bytes accessed", math.inf)
    return min(share, 1.0) if share >= MOSTLY else 0.0


def _is_called_once(run: Run, p: Program) -> bool:
    """Return whether the source shows that the program ``p`` is called only once in the run."""
    site = p.compilations[-1].site if len(p.compilations) == 1 else None
    return site is not None and runs_once(sources.of(run)(site.file), site.line)


def _on_a_device(d: Donation) -> int:
    """Return the bytes that the argument ``d``, which could be donated, has on one device. If these are
    unknown, return the bytes of the whole array, or 0 if they are unknown, too."""
    return d.device_bytes or d.bytes or 0


def _bytes(donations: Sequence[Donation]) -> int:
    return sum(map(_on_a_device, donations))


def _needed(run: Run, f: Function, possible: Sequence[Donation]) -> set[str]:
    """Return the names of those arguments in ``possible`` that the program needs after a call of ``f``: one
    of its arrays was alive after a recorded call, or the source reads the variable after the call. The source
    does not count for objects that ``nnx.jit`` updates."""
    alive = {path for c in f.compilations if c.fate is not None for path in c.fate.kept}
    needed = {root(d.path or "") for d in possible if d.path in alive}
    for name in dict.fromkeys(root(d.path or "") for d in possible):
        for c in f.compilations:
            if c.entry != "call" or c.site is None or name in needed or _is_object(c, f, name):
                continue
            column = c.missed.column if c.missed is not None else None
            source = sources.of(run)(c.site.file)
            if later_reads.read_after(source, c.site.line, column, f.seen.name, f.seen.signature, name):
                needed.add(name)
    return needed


def _passed_twice(f: Function) -> set[str]:
    """Return the names of the arguments of ``f`` with an array that a call passed twice, as in ``params`` and
    ``target`` with the same arrays. XLA raises an error if such an array is donated."""
    return {root(path) for c in f.compilations if c.fate is not None for path in c.fate.twice or ()}


def _advice(
    p: Program, f: Function, names: Sequence[str], free: Collection[str], now: tuple[str, ...]
) -> Message:
    """Return advice on how to donate the arguments ``names`` of ``f``, whose program is ``p``. The advice
    depends on the wrapper that jits ``f``.

    Args:
      free: all arguments of ``f`` that could be donated, also those with little memory.
      now: the other arguments that ``f`` donates already.
    """
    argnames = repr(names[0] if len(names) == 1 else tuple(names))
    them, donated = "it" if len(names) == 1 else "them", Names(tuple(names))
    if all(_is_object(p.compilations[-1], f, name) for name in names):
        return message("fix-donate-in-place", function=f.display_name, argnames=argnames, names=donated)
    if PMAP in f.seen.wrappers:
        parameters = [n for n in loop_calls.parameters(f.seen.signature) if n != "self"]
        at = tuple(parameters.index(n) for n in names if n in parameters)
        positions = repr(at) if len(at) == len(names) else "(...)"
        return message("fix-donate-to-pmap", positions=positions, names=donated, them=them)
    if FILTER_JIT in f.seen.wrappers:
        return _in_filter_jit(p.compilations[-1], f, free, now)
    argnames = repr(names[0] if len(names) == 1 and not now else (*now, *names))
    return message(
        "fix-donate",
        function=f.display_name,
        argnames=argnames,
        now=message("donates-now", names=Names(now)) if now else None,
        names=donated,
        them=them,
    )


def _in_filter_jit(c: Compilation, f: Function, free: Collection[str], now: Collection[str]) -> Message:
    """Return advice on how to donate the arguments ``free`` of ``f`` under ``eqx.filter_jit``, which donates
    either all arguments or all except the first. ``c`` is a call of ``f``, from which the other arguments are
    known. ``now`` are arguments that ``f`` donates already."""
    leaves = c.key.arguments if c.key is not None else []
    arrays = list(dict.fromkeys(root(leaf.path) for leaf in leaves if leaf.shape is not None))
    others = tuple(name for name in arrays if name not in free and name not in now)
    donated = Names(tuple(name for name in arrays if name in free))
    if not others:
        return message("fix-donate-all", names=donated)
    one, many = message("as-first-parameter", name=others[0]), message("as-first-tuple", names=Names(others))
    parameters = loop_calls.parameters(f.seen.signature)
    first = message("is-first", name=others[0]) if parameters[:1] == [others[0]] else one
    return message(
        "fix-donate-except-first",
        first=first if len(others) == 1 else many,
        names=donated,
    )


class Shared(NamedTuple):
    """Two variables of the calling code that have the same arrays, such as a model and its target.

    Attributes:
      original, copy: the variables, in the order of the arguments: ``params``, ``state.target_params``.
      leaf: the function that copies one leaf of ``original``, as source; None: both are objects of nnx.
    """

    original: str
    copy: str
    leaf: str | None


def _copy_first(shared: Shared, donate: Words) -> Message:
    """Return the advice to copy one of the variables ``shared``, which have the same arrays, and then to
    follow the advice ``donate``."""
    if shared.leaf is None:
        return message("fix-copy-state-then-donate", copy=shared.copy, original=shared.original, fix=donate)
    return message(
        "fix-copy-then-donate", copy=shared.copy, original=shared.original, leaf=shared.leaf, fix=donate
    )


def _shared(run: Run, f: Function) -> Shared | None:
    """Return the two variables through which calls of ``f`` are passed the same arrays twice, if it is enough
    to copy the arrays once: each of these calls is in a loop, and its statement assigns both variables anew,
    or both are objects into which ``nnx.jit`` puts the new arrays. Return None otherwise, or if ``f`` has a
    wrapper other than ``nnx.jit`` and ``eqx.filter_jit``."""
    found = set[tuple[str, str, bool]]()
    for c in f.compilations:
        if c.fate is None or not c.fate.twice:
            continue
        places = _places(c)
        at = c.site
        if places is None or at is None or c.missed is None:
            return None
        source, column = sources.of(run)(at.file), c.missed.column
        objects = all(_is_object(c, f, place) for place in places)
        call = loop_calls.call_at(source, at.line, column, f.seen.name)
        loop = loop_calls.find(source, at.line, column, f.seen.name)
        if call is None or not (objects or loop is not None):
            return None
        passed = [(loop_calls.argument(call, f.seen.signature, root(p)), split(p)[1]) for p in places]
        anew = loop.targets if loop is not None else set()
        if not all(isinstance(a, ast.Name) and (objects or a.id in anew) for a, _ in passed):
            return None
        original, copy = (f"{ast.unparse(a)}{below}" for a, below in passed if a is not None)
        found.add((original, copy, objects))
    if len(found) != 1 or not {*f.seen.wrappers} <= {FILTER_JIT, IN_PLACE}:
        return None
    original, copy, objects = found.pop()
    if objects:
        return Shared(original, copy, None)
    leaf = "lambda a: jnp.copy(a) if eqx.is_array(a) else a" if FILTER_JIT in f.seen.wrappers else "jnp.copy"
    return Shared(original, copy, leaf)


def _places(c: Compilation) -> tuple[str, str] | None:
    """Return the paths of two parts of the arguments that have the same arrays in the same positions in the
    call ``c``: ``("params", "target")``. Return None if no two parts contain all arrays that were passed
    twice, or if that is unknown."""
    fate = c.fate
    if fate is None or not fate.twice or fate.twice_arrays is None or c.key is None:
        return None
    arrays = grouped((number, path) for path, number in zip(fate.twice, fate.twice_arrays, strict=False))
    pairs = [(tokens(paths[0]), tokens(paths[1])) for paths in arrays.values() if len(paths) == 2]
    a, b = (tokens(common_prefix(["".join(pair[k]) for pair in pairs]) or "") for k in (0, 1))
    if len(pairs) < len(arrays) or not a or not b or any(x[len(a) :] != y[len(b) :] for x, y in pairs):
        return None
    leaves = [tokens(leaf.path) for leaf in c.key.arguments]
    twice = {*fate.twice}

    def whole(above: list[str]) -> bool:
        return all("".join(leaf) in twice for leaf in leaves if leaf[: len(above)] == above)

    while len(a) > 1 and len(b) > 1 and a[-1] == b[-1] and whole(a[:-1]) and whole(b[:-1]):
        a, b = a[:-1], b[:-1]
    return "".join(a), "".join(b)


def _is_object(c: Compilation, f: Function, path: str) -> bool:
    """Return whether ``path`` is an object in the call ``c`` of ``f`` under ``nnx.jit``, which puts the new
    arrays into this object after the call. False for an array, or a container such as a list."""
    return IN_PLACE in f.seen.wrappers and c.key is not None and "." in c.key.nodes.get(path, "")
