"""Rules JX505 (a donated argument that XLA cannot reuse), JX506 (an argument that could be donated) and JX507
(a large array that is a constant of the program): memory that a program uses twice, or for nothing."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from jaxscope.analysis import loop_calls, rewrap_site
from jaxscope.analysis.paths import common_prefix, root, split, tokens
from jaxscope.analysis.programs import Texts
from jaxscope.analysis.stablehlo.donation import Donation
from jaxscope.model import sources
from jaxscope.model.records import Compilation, Function, Program
from jaxscope.model.run import Run
from jaxscope.rules.each_program import of_compiled, users
from jaxscope.rules.programs import MIB, and_more, evidence, small
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, LIKELY, NOTE, WARNING, Finding, Fix, fix_of
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Bytes, Message, Names, message

IN_PLACE = "flax.nnx.jit"  # puts the arrays that a call returns into the objects that it was passed
FILTER_JIT = "equinox.filter_jit"  # it has no donate_argnames
PMAP = "jax.pmap"  # it has no donate_argnames
FEW_BYTES = 1024  # a donation that is lost and does not matter
LARGE = 0.1  # share of the bytes: an argument that is worth naming


@rule("JX505", "unused-donation", WARNING)
def unused_donation(run: Run) -> Iterator[Finding]:
    yield from of_compiled(run, _unused)


def _unused(p: Program, f: Function, texts: Texts) -> Iterator[tuple[Hashable, Finding]]:
    unused = [d for d in _donation(texts) if d.status == "unused"]
    if sum(d.device_bytes or d.bytes or 0 for d in unused) < max(FEW_BYTES, small(p)):
        return
    first = max(unused, key=lambda d: d.bytes or 0)
    text = message(
        "unused-donation",
        function=f.display_name,
        path=first.path or "argument",
        more=and_more(len(unused)),
        bytes=_bytes(unused),
        reason=message("unused-donation-reason", reason=first.reason) if first.reason else None,
    )
    yield first.path, _finding("JX505", WARNING, CERTAIN, text, p, f, Fix(message("fix-unused-donation")))


@rule("JX506", "possible-donation", NOTE)
def possible_donation(run: Run) -> Iterator[Finding]:
    found = list(of_compiled(run, functools.partial(_possible, run)))
    largest = max((f for f in found if _updates_in_place(run, f)), key=_donated, default=None)
    for f in found:
        if f is largest:
            yield _with_the_same_objects(run, f, found)
        elif largest is None or not _of_the_same(run, f, largest):
            yield f


def _updates_in_place(run: Run, f: Finding) -> bool:
    """Return whether the function of the finding ``f`` is under ``nnx.jit``, which puts the arrays that the
    call returns into the objects that were passed. So all functions that get such an object get the newest
    arrays, and each of them may donate it."""
    function = run.functions.get(f.function or "")
    return function is not None and IN_PLACE in function.seen.wrappers


def _names(f: Finding) -> list[str]:
    fix = fix_of(f)
    return list(fix.arguments["donate_argnames"]) if fix is not None else []


def _donated(f: Finding) -> float:
    size = f.title.fields.get("bytes") if isinstance(f.title, Message) else None
    return size.bytes if isinstance(size, Bytes) else 0.0


def _of_the_same(run: Run, f: Finding, largest: Finding) -> bool:
    """Return whether the findings ``f`` and ``largest`` are about the same memory, so that one of them is
    enough: the function of ``f`` is under ``nnx.jit``, and all its objects that could be donated are also
    passed to the function of ``largest``."""
    return _updates_in_place(run, f) and f.contexts == largest.contexts and {*_names(f)} <= {*_names(largest)}


def _with_the_same_objects(run: Run, largest: Finding, findings: Sequence[Finding]) -> Finding:
    """Return the finding ``largest`` with the evidence of those of ``findings`` that are about functions
    under ``nnx.jit`` which are passed the same objects. These functions then need no finding of their own."""
    others = [f for f in findings if f is not largest and _of_the_same(run, f, largest)]
    if not others:
        return largest
    return msgspec.structs.replace(
        largest, evidence=[*largest.evidence, *(e for f in others for e in f.evidence)]
    )


def _possible(run: Run, p: Program, f: Function, texts: Texts) -> Iterator[tuple[Hashable, Finding]]:
    gone = {path: c.fate.seen for c in p.compilations if c.fate is not None for path in c.fate.gone}
    fates = [c.fate for c in f.compilations if c.fate is not None]
    kept = {path for fate in fates for path in fate.kept}
    # XLA raises an error if a donated array is passed twice, such as params that are also the target's.
    twice = {root(path) for fate in fates for path in fate.twice or ()}
    shared = _shared(run, f) if twice else None
    free = [
        d
        for d in _donation(texts)
        if d.status == "possible"
        and d.path in gone.keys() - kept
        and (shared is not None or root(d.path or "") not in twice)
    ]
    if sum(d.bytes or 0 for d in free) < MIB:
        return
    held: Counter[str] = Counter()
    for d in free:
        held[root(d.path or "x")] += d.bytes or 0
    largest = tuple(name for name, size in held.most_common() if size >= LARGE * held.total())
    names = largest or tuple(held)
    free = [d for d in free if root(d.path or "x") in names]
    first = max(free, key=lambda d: d.bytes or 0)
    text = message(
        "possible-donation",
        function=f.display_name,
        path=first.path,
        more=and_more(len(free)),
        bytes=_bytes(free),
        them="it" if len(free) == 1 else "them",
        when="when the program ended" if gone[first.path or ""] == "exit" else "after the call",
    )
    them = "it" if len(names) == 1 else "them"
    argnames = repr(names[0] if len(names) == 1 else names)
    if _objects_of_nnx(p, f, names):
        words = message("fix-donate-in-place", function=f.display_name, argnames=argnames, names=Names(names))
    elif PMAP in f.seen.wrappers:
        words = message("fix-donate-to-pmap", names=Names(names), them=them)
    elif FILTER_JIT in f.seen.wrappers:
        words = message("fix-donate-except-first", names=Names(names))
    else:
        words = message(
            "fix-donate", function=f.display_name, argnames=argnames, names=Names(names), them=them
        )
    fix = Fix(words, "donate", {"donate_argnames": list(names)})
    if shared is not None and twice & {*names}:
        words = message("fix-copy-then-donate", copy=shared.copy, original=shared.original, fix=words)
        fix = Fix(words, "donate", {**fix.arguments, "copy": shared.copy, "copy_of": shared.original})
    yield first.path, _finding("JX506", NOTE, LIKELY, text, p, f, fix)


class Shared(NamedTuple):
    """Two variables of the calling code that begin as the same arrays, such as a model and its target.

    Attributes:
      original, copy: the variables, in the order of the arguments: ``params``, ``state.target_params``.
    """

    original: str
    copy: str


def _shared(run: Run, f: Function) -> Shared | None:
    """Return the two variables through which calls of ``f`` were passed the same arrays twice, if one copy
    would suffice to make them different: ``target = params`` before a loop becomes a copy.

    It suffices if each such call is in a loop and assigns both variables anew. None: it does not, or that is
    unknown.
    """
    found = set[Shared | None]()
    for c in f.compilations:
        if c.fate is None or not c.fate.twice:
            continue
        places = _places(c)
        at = c.site
        call = (
            loop_calls.find(sources.of(run)(at.file), at.line, c.missed.column, f.seen.name)
            if at is not None and c.missed is not None
            else None
        )
        if places is None or call is None:
            return None
        passed = [(loop_calls.argument(call.call, f.seen.signature, root(p)), split(p)[1]) for p in places]
        if not all(isinstance(a, ast.Name) and a.id in call.targets for a, _ in passed):
            return None
        found.add(Shared(*(f"{ast.unparse(a)}{below}" for a, below in passed if a is not None)))
    return found.pop() if len(found) == 1 and f.seen.wrappers == [] else None


def _places(c: Compilation) -> tuple[str, str] | None:
    """Return the paths of two containers (or arrays) whose arrays, in equal positions, the call ``c`` was
    passed twice: ``("params", "target")``. None: there are no such two, or that is unknown.
    """
    fate = c.fate
    if fate is None or not fate.twice or fate.twice_arrays is None or c.key is None:
        return None
    arrays: dict[int, list[str]] = {}
    for path, number in zip(fate.twice, fate.twice_arrays, strict=False):
        arrays.setdefault(number, []).append(path)
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


def _objects_of_nnx(p: Program, f: Function, names: Sequence[str]) -> bool:
    """Return whether the function ``f`` is under ``nnx.jit`` and all its arguments ``names`` are objects,
    into which nnx.jit puts the new arrays after a call. False if one of the arguments is an array, or a
    container such as a list. The latest call of ``p``, a program of ``f``, says what the arguments are."""
    key = p.compilations[-1].key
    return IN_PLACE in f.seen.wrappers and key is not None and all("." in key.nodes.get(n, "") for n in names)


@rule("JX507", "captured-constant", WARNING)
def captured_constant(run: Run) -> Iterator[Finding]:
    for p, f, texts in users(run):
        for c in texts.stablehlo.constants if texts.stablehlo is not None else ():
            if c.splat or c.bytes is None or c.bytes < MIB:
                continue
            unnamed = message("one-of", names=Names(c.names)) if c.names else message("unnamed-array")
            text = message(
                "captured-constant", function=f.display_name, constant=c.name or unnamed, bytes=Bytes(c.bytes)
            )
            words = message("fix-pass-as-argument", constant=c.name or "it")
            if c.name is not None and not _is_written(run, f, root(c.name)):
                words = message("fix-pass-inner", constant=c.name, function=f.display_name)
            fix = Fix(words, "pass_argument", {"name": c.name})
            yield _finding("JX507", WARNING, CERTAIN, text, p, f, fix, c.source)


def _is_written(run: Run, f: Function, name: str) -> bool:
    """Return whether the variable or attribute ``name``, which the trace of ``f`` captured, occurs in the
    file of ``f``. If it does not, code that ``f`` calls captured it, such as the data loader of a library.
    True if the file cannot be read.
    """
    source = sources.of(run)(f.seen.file) if f.seen.file is not None else None
    found = rewrap_site.syntax(source) if source is not None else None
    if found is None:
        return True
    nodes = ast.walk(found.tree)
    return any(name in (getattr(n, "id", None), getattr(n, "attr", None)) for n in nodes)


def _donation(texts: Texts) -> Sequence[Donation]:
    return texts.stablehlo.donation if texts.stablehlo is not None else ()


def _bytes(donations: Sequence[Donation]) -> Bytes:
    return Bytes(sum(d.bytes or 0 for d in donations))


def _finding(
    code: str,
    severity: str,
    certainty: str,
    text: Message,
    p: Program,
    f: Function,
    fix: Fix,
    source: Frame | None = None,
) -> Finding:
    line = source or p.compilations[-1].site
    return Finding(code, severity, certainty, text, f.id, line, evidence(p, text, line), fix)
