"""Rules JX202, JX203, JX301 to JX303 and JX401 about compiled programs: unrolled loops, programs without a
result, host callbacks, precision, and communication that the partitioner inserts."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from jaxscope.analysis import jit_decorators, line_names
from jaxscope.analysis.avals import aval_bytes, short_dtype
from jaxscope.analysis.hlo.collectives import Collective
from jaxscope.analysis.module_libraries import spelling
from jaxscope.analysis.programs import Texts, peak_bytes
from jaxscope.analysis.rewrap_site import counts_only, in_a_loop, only_loop, syntax, widens
from jaxscope.analysis.sharding_audit import RESULT
from jaxscope.analysis.stablehlo.callbacks import Callback
from jaxscope.analysis.stablehlo.matmuls import Product
from jaxscope.analysis.stablehlo.module import CALLS, CONSTANTS
from jaxscope.analysis.stablehlo.precision import Doubles, Upcast
from jaxscope.analysis.stablehlo.repeats import Repeated
from jaxscope.model import sources
from jaxscope.model.causes import recompilations
from jaxscope.model.payers import total_seconds
from jaxscope.model.records import Compilation, Function, Program
from jaxscope.model.run import Run
from jaxscope.rules import arguments, recompiles
from jaxscope.rules.each_program import of_compiled, users
from jaxscope.rules.registry import rule
from jaxscope.schema.file_owner import STANDING, Standing
from jaxscope.schema.findings import CERTAIN, LIKELY, NOTE, WARNING, Evidence, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.libraries import keeps_callbacks
from jaxscope.schema.messages import (
    Bytes,
    Count,
    Field,
    Message,
    Names,
    Parts,
    Percent,
    Seconds,
    Words,
    message,
)

TURNS = 8  # iterations of an unrolled loop
TURN = 3  # operations in one iteration
FEW_TURNS = 4  # iterations of an unrolled loop if they are large
LARGE_TURN = 60  # operations in one of few iterations; a layer of a transformer has 120 and more
# Operations that multiply matrices, and those of which random number generators mostly consist
PRODUCTS = frozenset({"stablehlo.dot_general", "stablehlo.convolution"})
OF_RANDOM_BITS = frozenset(
    {"stablehlo.xor", "stablehlo.or", "stablehlo.shift_left", "stablehlo.shift_right_logical"}
)
DRAWN = 0.15  # share of the operations of a program that are of a random number generator
LITTLE = 0.02  # share of all seconds of compiling below which a loop of few iterations is no finding
LINEN = "flax.linen"
MUCH = 0.5  # share of a program's operations that a scan must save if the iterations are few
MIB = 1 << 20
SCANNED = 64 << 10  # bytes of a gathered argument that a scan goes over, from which on it is reported
SMALL = 0.05  # share of a program's peak memory below which an array does not matter
HALF = frozenset({"bf16", "f16", "bfloat16", "float16"})
SPREADS = 3  # if so many lines have matrix products in a wider type, one cause is assumed
MOST = 3  # functions named in one title
LINES = 4  # line numbers in one title
SHOWN = 5  # repeated blocks in the evidence of one finding


def evidence(p: Program, text: Words, source: Frame | None) -> list[Evidence]:
    c: Compilation = p.compilations[-1]
    return [Evidence(text, compilation=c.id, program=p.id, source=source)]


def and_more(arrays: int) -> Message | None:
    """Return `` and 2 other arrays`` for a message about 3 arrays that names one of them; None for 1."""
    return message("and-more", others=Count(arrays - 1, "other array")) if arrays > 1 else None


def mesh_axes(axes: Sequence[str]) -> Message:
    """Return ``mesh axis 'data'`` or ``mesh axes 'data' and 'model'``."""
    return message("mesh-axis" if len(axes) == 1 else "mesh-axes", names=Names(tuple(map(repr, axes))))


@rule("JX202", "unrolled-loop", WARNING)
def unrolled_loop(run: Run) -> Iterator[Finding]:
    # The same unrolled loop occurs in the forward and in the backward pass, and in each function that has
    # it. All of these become one finding.
    lines: dict[Hashable, tuple[Frame | None, list[_Block]]] = {}
    for p, f, texts in users(run):
        found = [
            r
            for r in (texts.stablehlo.repeated if texts.stablehlo is not None else ())
            if (_many_turns(r) or (r.times >= FEW_TURNS and r.length >= LARGE_TURN))
            and not r.in_loop
            and (r.carried or _independent(run, r))
            and not _in_library(run, f, r)
            and (not r.grows or _in_a_loop(run, f, r) is not None)
        ]
        for r in found:
            source = _line(run, f, r, found)
            at = (source.file, source.line) if source is not None else (f.id, r.line)
            lines.setdefault(at, (source, []))[1].append((p, f, r))
    for source, every in lines.values():
        several = [(p, f, r) for p, f, r in every if not _draws(run, p)]
        if not several:
            continue  # the program creates parameters, which happens once
        several.sort(key=lambda one: (one[2].backward, -one[2].length * one[2].times))
        (_, f, r), shares = several[0], _shares(run, several)
        many = any(_many_turns(other) for _, _, other in several)
        seconds = sum(share * _seconds(run, q, g) for q, g, share in shares)
        if not many and (all(share < MUCH for *_, share in shares) or seconds < LITTLE * total_seconds(run)):
            continue
        others = tuple(dict.fromkeys(g.display_name for _, g, _ in several if g.id != f.id))
        also = message("unrolled-also", functions=Names(others, MOST)) if others else None
        yield Finding(
            code="JX202",
            severity=WARNING if many else NOTE,
            certainty=LIKELY,
            title=message(
                "unrolled-growing-loop" if r.grows else "unrolled-loop",
                function=f.display_name,
                operations=r.length,
                times=r.times,
                also=also,
            ),
            function=f.id,
            source=source,
            evidence=[
                *(e for q, g, other in several[:SHOWN] for e in _repeated(q, g, other)),
                *(e for q, g, share in shares[:SHOWN] for e in _share(run, q, g, share)),
            ],
            fix=_instead_of_unrolling(run, [other for _, _, other in several], source),
            seconds=seconds or None,
            at_most=True,
            timed=not many,
        )


_Block = tuple[Program, Function, Repeated]  # (program, its function, a repeated block of operations)


def _many_turns(r: Repeated) -> bool:
    return r.times >= TURNS and r.length >= TURN


def _independent(run: Run, r: Repeated) -> bool:
    """Return whether the block ``r`` is the body of a loop in the user's source whose iterations use no
    results of each other, such as the tasks of a batch."""
    source = r.source
    if source is None or r.length < LARGE_TURN or STANDING(source.file) != Standing.USER:
        return False
    return in_a_loop(sources.of(run)(source.file), source.line)


def _draws(run: Run, p: Program) -> bool:
    """Return whether most of what the program ``p`` computes is random numbers, as for the initial parameters
    of a model: it multiplies no matrices, and many of its operations are those of a random number generator.
    """
    read = run.texts_of(p).stablehlo
    counts = {} if read is None else read.op_counts
    total = sum(n for name, n in counts.items() if name not in CONSTANTS | CALLS)
    return not any(counts.get(name) for name in PRODUCTS) and (
        sum(counts.get(name, 0) for name in OF_RANDOM_BITS) >= DRAWN * total > 0
    )


def _instead_of_unrolling(run: Run, blocks: Sequence[Repeated], line: Frame | None) -> Fix:
    """Return the advice how to write the loop at ``line``, which repeats the blocks of operations ``blocks``
    (the largest first): as a scan, as a fori_loop if all iterations do the same, or with vmap if no iteration
    uses a result of another. In a Flax module (``__call__``), the scan is Flax's own; for a loop that calls a
    whole model, it is JAX's."""
    if blocks[0].grows:
        return Fix(message("fix-final-length-then-scan"), "scan")
    forward = [r for r in blocks if not r.backward]
    if forward and not any(r.carried for r in forward):
        return Fix(message("fix-vmap-iterations"), "vmap")
    library = next((r.library for r in blocks if r.library), None)
    if library is None and line is not None and counts_only(sources.of(run)(line.file), line.line):
        return Fix(message("fix-same-iterations", same=spelling(library).same), "scan", {"library": library})
    in_module = line is not None and line.function.rpartition(".")[2] in ("__call__", "setup")
    return _scan(library if library != LINEN or in_module else None)


def _scan(library: str | None) -> Fix:
    """Return the advice to write a loop as a scan, in the words of ``library``, the one whose modules the
    loop calls: ``hk.scan`` for Haiku. None: no such library, and ``jax.lax.scan``."""
    spelled = spelling(library)
    layers = None
    if spelled.layers is not None:
        layers = message("scan-own-parameters", layers=spelled.layers)
    elif spelled.maker is not None:
        layers = message("scan-create-stacked", maker=spelled.maker)
    elif library is None:
        layers = message("scan-stack-list")
    words = message("fix-scan", scan=spelled.scan, layers=layers, same=spelled.same)
    return Fix(words, "scan", {"scan": spelled.scan, "library": library})


def _shares(run: Run, blocks: Sequence[_Block]) -> list[tuple[Program, Function, float]]:
    """Return (program, its function, share) for each program with unrolled Python loops. The share, from 0 to
    1, is the fraction of the program's operations that ``jax.lax.scan`` would save if it replaced the loops.

    Args:
      blocks: (program, its function, a repeated block of operations that such a loop made).
    """
    found = []
    for p, f in dict.fromkeys((p, f) for p, f, _ in blocks):
        read = run.texts_of(p).stablehlo
        counts = {} if read is None else read.op_counts
        total = sum(n for name, n in counts.items() if name not in CONSTANTS | CALLS)
        own = [r for q, _, r in blocks if q is p]
        outer = [r for r in own if not any(o is not r and o.first <= r.first and r.end <= o.end for o in own)]
        if total:
            found.append((p, f, min(1.0, sum(r.length * (r.times - 1) for r in outer) / total)))
    return found


def _seconds(run: Run, p: Program, f: Function) -> float:
    """Return the seconds of tracing, lowering and compiling ``p``, without recompiles of its function ``f``:
    those have findings of their own."""
    again = {c.id for c in recompilations(f, run)}
    return sum(c.seconds for c in p.compilations if c.id not in again)


def _in_library(run: Run, f: Function, r: Repeated) -> bool:
    """Return whether a library, and not the user's code, repeats the block of operations ``r`` in the program
    of ``f``, so that the user cannot change the loop. False if that is unknown.

    It is a library if the repeating line is a library's. If ``f`` itself is a library's function, it is also
    one if the repeating line is the user's call of ``f``, or if no line of the user that leads to the block
    is in a loop.
    """
    sites = [c.site for c in f.compilations if c.site is not None and STANDING(c.site.file) == Standing.USER]
    if r.source is None or not sites:
        return False
    called = f.seen.file is not None and STANDING(f.seen.file) != Standing.USER
    text = sources.of(run)
    if called and not any(in_a_loop(text(at.file), at.line) for at in r.under):
        return True
    at_the_call = called and (r.source.file, r.source.line) in {(s.file, s.line) for s in sites}
    return at_the_call or STANDING(r.source.file) != Standing.USER


def _line(run: Run, f: Function, r: Repeated, others: Sequence[Repeated]) -> Frame | None:
    """Return the line in a loop whose repetition made the block of operations ``r``; None if it is unknown.
    For a block of the backward pass, this is the line of the corresponding block of the forward pass, so that
    both are reported as one loop.

    Args:
      f: the function whose program has the block.
      others: all repeated blocks of the program.
    """
    own = _innermost(r)
    forward = [o for o in others if not o.backward] if r.backward else []
    for o in sorted(forward, key=lambda o: abs(o.times - r.times)):
        line = _innermost(o)
        if line is not None and (line == own or line in r.under):
            return _in_a_loop(run, f, o) or line
    if own is not None and any(_is_line(c.site, own) for c in f.compilations):
        return _only_loop(run, f) or own
    return _in_a_loop(run, f, r) or own


def _is_line(at: Frame | None, line: Frame) -> bool:
    return at is not None and (at.file, at.line) == (line.file, line.line)


def _only_loop(run: Run, f: Function) -> Frame | None:
    """Return the line of the loop in the source of ``f`` if there is only one, apart from loops inside it.
    This is for a loop whose body has several lines that make operations, so that no single line is repeated.
    None: there are several loops or none, or the source is unknown."""
    seen = f.seen
    source = sources.of(run)(seen.file) if seen.file is not None else None
    line = only_loop(source, seen.name, seen.line) if seen.line is not None else None
    return Frame(seen.file, line, seen.qualname) if line is not None and seen.file is not None else None


def _in_a_loop(run: Run, f: Function, r: Repeated) -> Frame | None:
    """Return the innermost line in a Python loop that leads to the block of operations ``r``; the outermost
    one if its arrays grow, because the loops inside, as over layers, are parts of one iteration. None: no
    loop is known between the call of ``f`` and the block."""
    calls = {(c.site.file, c.site.line) for c in f.compilations if c.site is not None}
    text = sources.of(run)
    inside = [r.source] if r.source is not None and r.source not in r.under else []
    found = None
    for at in [*inside, *reversed(r.under)]:
        if (at.file, at.line) in calls:
            break
        if in_a_loop(text(at.file), at.line):
            found = at
            if not r.grows:
                break
    return found


def _innermost(r: Repeated) -> Frame | None:
    """Return the line of the user's code whose repetition made the block of operations ``r``; None if
    unknown. If the whole block comes from one line in a helper, return that line, which is the same for all
    callers of the helper."""
    return r.under[-1] if r.source in r.under else r.source


def _repeated(p: Program, f: Function, r: Repeated) -> list[Evidence]:
    text = message("repeated-block", operations=r.length, times=r.times, function=f.display_name)
    return evidence(p, text, r.source)


def _share(run: Run, p: Program, f: Function, share: float) -> list[Evidence]:
    seconds = Seconds(_seconds(run, p, f))
    text = message("repeated-share", function=f.display_name, share=Percent(share), seconds=seconds)
    return evidence(p, text, None)


@rule("JX203", "no-result", WARNING)
def no_result(run: Run) -> Iterator[Finding]:
    for f in run.functions.values():
        called = [c for c in f.compilations if c.entry == "call" and c.traced is not None] if f.user else []
        in_vain = [c for c in called if _in_vain(c)]
        if not in_vain or len(in_vain) < len(called):
            continue
        c = in_vain[-1]
        operations = Count((c.traced and c.traced.equations) or 0, "operation")
        yield Finding(
            code="JX203",
            severity=WARNING,
            certainty=CERTAIN,
            title=message("no-result", function=f.display_name, operations=operations),
            function=f.id,
            source=c.site,
            evidence=[Evidence(message("returns-nothing"), compilation=c.id, source=c.site)],
            fix=Fix(message("fix-return-values"), "return_values"),
        )


def _in_vain(c: Compilation) -> bool:
    """Return whether the program of the call ``c`` computes something, but returns nothing and has no
    effects."""
    t = c.traced
    return t is not None and t.out == [] and t.effects == [] and bool(t.equations)


@rule("JX301", "host-callback", NOTE)
def host_callback(run: Run) -> Iterator[Finding]:
    for p, f, texts in users(run):
        # The callbacks of one function of the program have one remedy, and are one finding.
        places: dict[Hashable, list[Callback]] = {}
        for c in texts.stablehlo.callbacks if texts.stablehlo is not None else ():
            if not c.in_branch:  # in a branch of a conditional, as for rare prints: not in each call
                place = (c.source.file, c.source.function) if c.source is not None else None
                places.setdefault(place, []).append(c)
        for found in places.values():
            found.sort(key=_line_of)
            first = found[0]
            text = message(
                "host-callback", function=f.display_name, often=_how_often(found), lines=_lines(found)
            )
            seen = dict.fromkeys(c.source for c in found)
            listed = [e for source in seen for e in evidence(p, _with_cache(p, text), source)]
            subject = (first.source, first.kind)
            yield Finding(
                "JX301",
                NOTE,
                CERTAIN,
                text,
                f.id,
                first.source,
                listed,
                _instead_of(run, found),
                subject=subject,
            )


def _instead_of(run: Run, callbacks: Sequence[Callback]) -> Fix:
    """Return the advice about ``callbacks`` of one function of the program. It depends on JAX's functions
    that make them: some compute a value, some show one, and some do either."""
    kinds = {c.kind for c in callbacks}
    if kinds <= {"debug_callback", "debug_print"}:
        return Fix(message("fix-show-outside"), "call_back_less_often")
    if kinds != {"pure_callback"}:
        return Fix(message("fix-callback"), "call_back_less_often")
    at = callbacks[0].source
    source = sources.of(run)(at.file) if at is not None else None
    found = syntax(source) if source is not None else None
    calls = found.calls.get(at.line, []) if found is not None and at is not None else []
    methods = [k.value for c in calls for k in c.keywords if k.arg == "vmap_method"]
    one_by_one = any(isinstance(v, ast.Constant) and v.value == "sequential" for v in methods)
    vectorized = message("call-back-once") if one_by_one else None
    return Fix(message("fix-compute-in-jax", vectorized=vectorized), "compute_in_jax")


def _line_of(c: Callback) -> int:
    return c.source.line if c.source is not None else 0


def _lines(found: Sequence[Callback]) -> Message | None:
    """Return the clause ``, from lines 13, 14 and 15`` for the callbacks ``found``, if they are on several
    lines; None if they are on one line."""
    lines = sorted({_line_of(c) for c in found})
    return message("from-lines", numbers=Names(tuple(map(str, lines)), LINES)) if len(lines) > 1 else None


def _how_often(found: Sequence[Callback]) -> Message | str:
    """Return how often one call of a program calls back into Python, as part of a sentence. ``found`` are
    its callbacks in one function of the user."""
    n = sum(c.count for c in found)
    if all(c.in_loop and c.count == 1 for c in found):
        return message("in-each-iteration")
    if any(c.in_loop for c in found):
        return message("partly-in-a-loop", n=n)
    return message("so-often", n=n) if n > 1 else "once"


def _with_cache(p: Program, text: Message) -> Message:
    """Return ``text``, extended by a clause if the version of JAX that compiled ``p`` does not keep programs
    with callbacks in its persistent cache, and the cache is on."""
    c: Compilation = p.compilations[-1]
    version = c.process.started.jax if c.process.started is not None else None
    on = c.compiled is not None and c.compiled.persistent_cache in ("hit", "miss")
    if not on or keeps_callbacks(version) is not False:
        return text
    return message("callback-not-cached", finding=text, version=version)


@rule("JX302", "upcast", NOTE)
def upcast(run: Run) -> Iterator[Finding]:
    seen = set[Hashable]()  # the same line in train_step and in eval_step is reported once
    for p, f, texts in users(run):
        accidental = [u for u in _upcasts(texts) if not _is_requested_here(run, u)]
        if (spread := _spread(texts, accidental)) is not None:
            products, begins = spread
            if (begins.source, SPREADS) not in seen:
                seen.add((begins.source, SPREADS))
                yield _spread_finding(run, p, f, products, begins)
            continue
        for u in accidental:
            if u.bytes is None or u.bytes < max(MIB // 16, small(p)):
                continue
            subject = (u.source, u.before, u.after, u.bytes)
            if u.source is not None and subject in seen:
                continue
            seen.add(subject)
            text = message(
                "upcast", function=f.display_name, bytes=Bytes(u.bytes), before=u.before, after=u.after
            )
            fix = Fix(message("fix-cast-down"), "cast", {"dtype": u.before})
            found = evidence(p, text, u.source)
            yield Finding("JX302", NOTE, CERTAIN, text, f.id, u.source, found, fix, subject=subject)


def _upcasts(texts: Texts) -> list[Upcast]:
    """Return the conversions from half precision (bfloat16, float16) to a wider dtype in the program with the
    analyzed ``texts``. Conversions that differentiation created are left out."""
    found = texts.stablehlo.upcasts if texts.stablehlo is not None else ()
    return [u for u in found if u.before in HALF and not u.backward]


def _is_requested_here(run: Run, u: Upcast) -> bool:
    return u.source is not None and widens(sources.of(run)(u.source.file), u.source.line)


def _spread(texts: Texts, upcasts: Sequence[Upcast]) -> tuple[list[Product], Upcast] | None:
    """Find a conversion that makes other operations run in a wider dtype. Return (matrix products that run in
    a wider dtype because an operand is converted at their line, the largest of the other ``upcasts``). None
    if these products are on fewer than SPREADS lines.

    Example: a float32 array is added to bfloat16 activations. That makes the activations float32, and then
    each product converts its bfloat16 weights.
    """
    converted = {u.source: u for u in upcasts if u.source is not None}
    wide = {short_dtype(u.after) for u in upcasts}
    products = [
        q
        for q in (texts.stablehlo.products if texts.stablehlo is not None else ())
        if q.source in converted and q.operands.partition(" ")[0] in wide
    ]
    at = {q.source for q in products}
    if len(at) < SPREADS:
        return None
    before = [u for source, u in converted.items() if source not in at]
    return products, max(before or converted.values(), key=lambda u: u.bytes or 0)


def _spread_finding(
    run: Run, p: Program, f: Function, products: Sequence[Product], begins: Upcast
) -> Finding:
    lines = tuple(dict.fromkeys(str(q.source.line) for q in products if q.source is not None))
    text = message(
        "upcast-spreads",
        function=f.display_name,
        products=Count(sum(q.count for q in products), "matrix product"),
        before=begins.before,
        after=begins.after,
        lines=Names(lines, MOST, "lines"),
    )
    at = begins.source
    where = message("on-line", line=str(at.line)) if at is not None else "here"
    words = message("fix-cast-where-it-begins", wide=begins.after, dtype=begins.before, where=where)
    call = line_names.numpy_call(sources.of(run)(at.file), at.line) if at is not None else None
    if call is not None:
        words = message("fix-numpy-number", call=call, wide=begins.after, dtype=begins.before)
    fix = Fix(words, "cast", {"dtype": begins.before})
    found = evidence(p, text, begins.source)
    return Finding("JX302", WARNING, LIKELY, text, f.id, begins.source, found, fix, subject=(begins.source,))


def small(p: Program) -> float:
    """Return the number of bytes below which an array does not matter to the peak memory of ``p``; 0 if that
    memory is unknown."""
    compiled = p.compilations[-1].compiled
    peak = peak_bytes(compiled.memory) if compiled is not None and compiled.memory is not None else None
    return SMALL * (peak or 0)


@rule("JX303", "float64", WARNING)
def float64(run: Run) -> Iterator[Finding]:
    programs = list(users(run))
    mixed = any({*_floats(p)} - {"float64"} for p, _, _ in programs)
    returned = {
        group.function.id
        for group in recompiles.groups(run, ("dtype",))
        if group.came_back and arguments.dtype_of(group.cause.after) == "float64"
    }
    found = dict[Frame | str, tuple[Program, Function, Doubles, Frame | None]]()  # the largest, by line
    for p, f, texts in programs:
        doubles = texts.stablehlo.doubles if texts.stablehlo is not None else None
        if doubles is None or not doubles.operations:
            continue
        if run.platform == "cpu" and _is_requested(p, mixed=mixed):
            continue
        if f.id in returned:
            continue  # JX102 reports it, with the reason
        source = _first_double(p, texts)
        known = found.get(source or f.id)
        if known is None or known[2].operations < doubles.operations:
            found[source or f.id] = p, f, doubles, source
    for p, f, doubles, source in found.values():
        paths = tuple(a for a in doubles.arguments if a)
        text = message(
            "float64",
            function=f.display_name,
            operations=Count(doubles.operations, "operation"),
            arguments=message("float64-arguments", paths=Names(paths, MOST)) if paths else None,
        )
        what = Names(paths, MOST) if paths else message("float64-at-this-line")
        fix = Fix(message("fix-float32", what=what), "cast", {"dtype": "float32"})
        severity = NOTE if _is_requested(p, mixed=mixed) else WARNING
        yield Finding("JX303", severity, CERTAIN, text, f.id, source, evidence(p, text, source), fix)


def _is_requested(p: Program, *, mixed: bool) -> bool:
    """Return whether float64 seems to be the precision that the user wants in the program ``p``. On an
    accelerator this is still worth a note, because float64 is slower there.

    True if all floating-point arguments of the program are float64. True also if it has none (it may draw
    initial values), and no program of the run takes floats other than float64.

    Args:
      mixed: whether a program of the run takes floats other than float64.
    """
    floats = _floats(p)
    return floats == {"float64"} or (not floats and not mixed)


def _floats(p: Program) -> set[str]:
    """Return the dtypes of the floating-point arguments of ``p``."""
    key = p.compilations[-1].key
    return {leaf.dtype for leaf in key.arguments if leaf.dtype and "float" in leaf.dtype} if key else set()


def _first_double(p: Program, texts: Texts) -> Frame | None:
    """Return the line that makes the program ``p``, whose analyzed texts are ``texts``, compute in float64:
    the largest conversion of other floats, else another operation inside the function; the call if no such
    line is known."""
    read, call = texts.stablehlo, p.compilations[-1].site
    if read is None or read.doubles is None:
        return call
    converted = [u.source for u in read.upcasts if u.after in ("f64", "float64") and not u.backward]
    # JAX gives the constants of a program the line of its call.
    made = [o.source for o in read.doubles.origins]
    at_call = (call.file, call.line) if call is not None else None
    inside = (at for at in (*converted, *made) if at is not None and (at.file, at.line) != at_call)
    return next(inside, call)


@rule("JX401", "inserted-communication", WARNING)
def inserted_communication(run: Run) -> Iterator[Finding]:
    yield from of_compiled(run, functools.partial(_inserted, run))


def _inserted(run: Run, p: Program, f: Function, texts: Texts) -> Iterator[tuple[Hashable, Finding]]:
    lines: dict[tuple[Hashable, ...], list[Collective]] = {}
    constrained: dict[tuple[Hashable, ...], list[Collective]] = {}
    dropped = _dropped(texts)
    for c in texts.hlo.collectives if texts.hlo is not None else ():
        if c.kind == "all-gather" and c.bytes in dropped:
            continue
        if c.origin == "inserted" and c.kind in ("all-gather", "all-to-all") and c.weight is None:
            if c.constrained_at is not None:
                constrained.setdefault((c.constrained_at, c.constraint, c.kind), []).append(c)
            else:
                lines.setdefault((c.kind, c.source, tuple(c.axes or ())), []).append(c)
    for same, several in (*constrained.items(), *lines.items()):
        large = [
            c
            for c in several
            if (c.bytes or 0) * (c.executions or 1) >= MIB or _gathers_for_a_scan(run, p, c)
        ]
        if not large:
            continue
        if large[0].constrained_at is not None:
            # All collectives of the constraint belong to the finding, also small ones.
            yield same, _of_constraint(p, f, several)
            continue
        c = large[0]
        text = message("inserted-collectives", function=f.display_name, **_collectives(large))
        fix = Fix(message("fix-match-shardings"), "match_shardings")
        if c.kind == "all-gather" and c.axes and c.source is not None and _scans(run, c.source):
            axes = repr(tuple(c.axes) if len(c.axes) > 1 else c.axes[0])
            fix = Fix(message("fix-shard-other-axis", axes=axes), "shard_other_axis", {"axes": list(c.axes)})
        found = evidence(p, text, c.source)
        yield same, Finding("JX401", WARNING, c.source_certainty or CERTAIN, text, f.id, c.source, found, fix)


def _gathers_for_a_scan(run: Run, p: Program, c: Collective) -> bool:
    """Return whether the collective ``c`` of the program ``p`` gathers a whole argument for a scan over the
    sharded axis. Then each device computes the scan for all data, which costs more than the communication."""
    if c.kind != "all-gather" or c.source is None or (c.bytes or 0) < SCANNED or not _scans(run, c.source):
        return False
    key = p.compilations[-1].key
    return key is not None and any(aval_bytes(leaf.shape, leaf.dtype) == c.bytes for leaf in key.arguments)


def _scans(run: Run, line: Frame) -> bool:
    """Return whether ``line`` calls ``jax.lax.scan``, which goes over the first axis of its inputs."""
    return jit_decorators.calls(sources.of(run)(line.file), line.line, frozenset({"scan"}))


def _dropped(texts: Texts) -> set[int]:
    """Return the sizes in bytes of those results of a program whose requested sharding JAX drops, because a
    dimension is not divisible by the mesh axes. The set has two sizes of each result: with padding and
    without.

    The partitioner computes such a result as requested and gathers it in the end. An all-gather of one of
    these sizes is not reported, because another rule (JX503) reports the cause.
    """
    found = texts.stablehlo.uneven if texts.stablehlo is not None else ()
    results = [u for u in found if u.of == RESULT and u.bytes is not None]
    whole = {u.bytes * u.padded // u.shape[u.dimension] for u in results if u.bytes and u.shape[u.dimension]}
    return whole | {u.bytes for u in results if u.bytes}


def _axes(collectives: Sequence[Collective]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(axis for c in collectives for axis in c.axes or ()))


def _collectives(collectives: Sequence[Collective]) -> dict[str, Field]:
    """Return fields of a message about ``collectives``: how many there are, the mesh axes they communicate
    over, and their bytes."""
    axes = _axes(collectives)
    several = Counter((c.bytes or 0, c.executions or 1) for c in collectives)
    sizes = [
        message(
            "collective-size",
            count=message("count-of", n=n) if len(collectives) > 1 else None,
            bytes=Bytes(bytes),
            times=message("collective-times", n=times) if times > 1 else None,
        )
        for (bytes, times), n in several.items()
    ]
    return {
        "collectives": Count(len(collectives), collectives[0].kind),
        "axes": message("over-axes", axes=mesh_axes(axes)) if axes else None,
        "sizes": Parts(tuple(sizes), between=", "),
    }


def _of_constraint(p: Program, f: Function, collectives: Sequence[Collective]) -> Finding:
    """Return a finding about ``collectives`` in the program ``p`` of the function ``f``. All of them are
    caused by one ``with_sharding_constraint`` of the user."""
    c = collectives[0]
    text = message(
        "constraint-collectives",
        function=f.display_name,
        constraint=c.constraint,
        **_collectives(collectives),
    )
    compiled_at = dict.fromkeys(o.source for o in collectives if o.source not in (None, c.constrained_at))
    listed = [
        e for at in compiled_at for e in evidence(p, message("collective-here", kind=c.kind, line=at), at)
    ]
    axes = _axes(collectives)
    if c.kind != "all-gather":
        fix = Fix(message("fix-constrain-as-before"), "remove_constraint")
    else:
        kept = message("fix-keep-axes", axes=Names(axes)) if axes else message("fix-keep-array-sharded")
        fix = Fix(kept, "remove_constraint", {"keep_axes": list(axes)})
    return Finding(
        "JX401",
        WARNING,
        CERTAIN,
        text,
        f.id,
        c.constrained_at,
        [*evidence(p, text, c.constrained_at), *listed],
        fix,
    )
