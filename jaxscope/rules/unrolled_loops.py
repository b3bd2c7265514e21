"""Rule JX202: Python loops whose iterations are all written out in the compiled program."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from jaxscope.analysis.array_names import holds_array
from jaxscope.analysis.loop_calls import Iterated, arrays_iterated, takes_chunks, writes_elements
from jaxscope.analysis.module_libraries import spelling
from jaxscope.analysis.programs import Texts
from jaxscope.analysis.sample_sites import Sites
from jaxscope.analysis.source_lines import (
    appended,
    begin_empty,
    changed_through_methods,
    counts_only,
    in_a_loop,
    loop_around,
    only_loop,
    tests_of_target,
)
from jaxscope.analysis.stablehlo.module import CALLS, CONSTANTS
from jaxscope.analysis.stablehlo.repeats import Repeated
from jaxscope.model import sources
from jaxscope.model.causes import recompilations
from jaxscope.model.payers import total_seconds
from jaxscope.model.records import Function, Program, cached_until_changed
from jaxscope.model.run import Run
from jaxscope.rules import sample_sites
from jaxscope.rules.each_program import costliest
from jaxscope.rules.finding_parts import MOST, about, evidence
from jaxscope.rules.registry import rule
from jaxscope.schema.file_owner import STANDING, Standing
from jaxscope.schema.findings import LIKELY, NOTE, WARNING, Evidence, Finding, Fix, extended
from jaxscope.schema.keys import Frame, same_line
from jaxscope.schema.messages import Count, Field, Message, Names, Percent, Seconds, message

TURNS = 8  # the fewest iterations of an unrolled loop that is reported
TURN = 3  # the fewest operations in one of its iterations
FEW_TURNS = 4  # the fewest iterations if they are large
LARGE_TURN = 60  # the fewest operations in a large iteration; a layer of a transformer has 120 and more
# Operations that multiply matrices, and those of which random number generators mostly consist
PRODUCTS = frozenset({"stablehlo.dot_general", "stablehlo.convolution"})
OF_RANDOM_BITS = frozenset(
    {"stablehlo.xor", "stablehlo.or", "stablehlo.shift_left", "stablehlo.shift_right_logical"}
)
FEW_DRAWS = 48  # the fewest draws of a reported program that are equal to another one
DRAWN = 0.15  # share of the operations of a program that are of a random number generator
FEW_RESULTS = 4  # draws for each result of a program that does more with them than to return them
MOST_DRAWS = 0.25  # share of all seconds of compiling below which repeated draws are no finding
LITTLE = 0.1  # share of all seconds of compiling below which a loop of few iterations is no finding
# Below both shares, of all seconds of compiling and of the run's seconds, no unrolled loop is a finding.
LITTLE_OF_ALL, LITTLE_OF_RUN = 0.05, 0.005
LINEN = "flax.linen"
SMALL_TURNS = 0.2  # share of a program's operations that vmap must save if the iterations are small
MUCH = 0.5  # share of a program's operations that a scan must save if the iterations are few
# A file that matches has attention, as a language model
ATTENTION = re.compile(r"softmax|attention|\battend", re.IGNORECASE)
SHOWN = 5  # repeated blocks in the evidence of one finding


@rule("JX202", "unrolled-loop", WARNING)
def unrolled_loop(run: Run) -> Iterator[Finding]:
    """Yield findings about Python loops that are unrolled in a program, and about many equal random draws."""
    yield from _repeated_draws(run)
    of_sites = list(sample_sites.in_loops(run, TURNS))
    yield from of_sites
    reported = {f.source for f in of_sites}
    for line, blocks in _by_line(run):
        sites = sample_sites.of_line(run, line) if line is not None else None
        loop = Frame(line.file, sites.line, line.function) if line is not None and sites is not None else None
        finding = _finding(run, line, blocks, sites) if loop is None or loop not in reported else None
        if finding is not None:
            yield finding


class _Block(NamedTuple):
    """A block of operations that a program repeats, because it was traced in a Python loop.

    Attributes:
      program: the program.
      function: the function whose program it is.
      repeated: the operations of the block.
    """

    program: Program
    function: Function
    repeated: Repeated


def _by_line(run: Run) -> list[tuple[Frame | None, list[_Block]]]:
    """Return (line, blocks) for each loop that repeats blocks of operations, with the line of the largest
    block of the forward pass. The line is None if it is unknown. The same loop occurs in the forward and in
    the backward pass, and in each function that has it. Programs that create parameters are left out
    (``_repeated_draws`` reports them)."""
    loops: dict[Hashable, list[tuple[Frame | None, _Block]]] = {}
    for p, f, texts in (*costliest(run), *_others(run), *_of_libraries(run)):
        repeated = texts.stablehlo.repeated if texts.stablehlo is not None else ()
        found = [r for r in repeated if _is_users_loop(run, f, r)]
        for r in found if not _draws(run, p) else ():
            line = _line(run, f, r, found)
            around = loop_around(sources.of(run)(line.file), line.line) if line is not None else None
            at = (line.file, around or line.line) if line is not None else (f.id, r.line)
            loops.setdefault(at, []).append((line, _Block(p, f, r)))
    largest_first = (sorted(blocks, key=lambda b: _by_size(b[1])) for blocks in loops.values())
    return [(blocks[0][0], [block for _, block in blocks]) for blocks in largest_first]


def _by_size(b: _Block) -> tuple[bool, int]:
    """Return the key by which blocks are sorted: those of the forward pass first, then the largest."""
    return b.repeated.backward, -b.repeated.length * b.repeated.times


def _is_users_loop(run: Run, f: Function, r: Repeated) -> bool:
    """Return whether the block of operations ``r`` in a program of ``f`` is repeated often enough, and by a
    Python loop that the user can write in another way."""
    long = _many_turns(r) or (r.times >= FEW_TURNS and r.length >= LARGE_TURN)
    if not long or not (r.carried or _independent(run, r)) or _in_library(run, f, r):
        return False
    # A block in a loop of the program may come from ``unroll=`` of a scan.
    return not (r.in_loop or r.grows) or _in_a_loop(run, f, r) is not None


def _finding(run: Run, line: Frame | None, blocks: list[_Block], sites: Sites | None) -> Finding | None:
    """Return the finding about the loop at ``line`` that repeats ``blocks``; None if a scan would save too
    little. ``sites``: the loop of a probabilistic model that makes sample sites there; None: there is
    none."""
    shares = _shares(run, blocks)
    seconds = sum(share * _seconds(run, p, f) for p, f, share in shares)
    many = any(_many_turns(b.repeated) for b in blocks)
    if not _saves_enough(blocks, [share for *_, share in shares]):
        return None
    if not many and (all(share < MUCH for *_, share in shares) or seconds < LITTLE * total_seconds(run)):
        return None
    if seconds < LITTLE_OF_ALL * total_seconds(run) and seconds < LITTLE_OF_RUN * (run.seconds or 0.0):
        return None
    _, f, largest = blocks[0]
    others = tuple(dict.fromkeys(b.function.display_name for b in blocks if b.function.id != f.id))
    advice = _instead_of_unrolling(run, [b.repeated for b in blocks], line)
    if advice.kind == "scan" and line is not None:
        advice = _with_conditions(advice, sources.of(run)(line.file), line, largest)
    outside = _caller_outside_jit(run, line) if advice.kind == "scan" else None
    if outside is not None:
        advice = extended(advice, "fix-scan-in-jit", function=outside.function, line=outside)
    return Finding(
        code="JX202",
        severity=WARNING if many else NOTE,
        certainty=LIKELY,
        title=message(
            "unrolled-growing-loop" if largest.grows else "unrolled-loop",
            **_where(f, line),
            operations=largest.length,
            times=largest.times,
            also=message("unrolled-also", functions=Names(others, MOST)) if others else None,
        ),
        function=f.id,
        source=line,
        evidence=[
            *(e for b in blocks[:SHOWN] for e in _repeated(b)),
            *(e for p, g, share in shares[:SHOWN] for e in _share(run, p, g, share)),
        ],
        fix=advice if sites is None else sample_sites.advice(sites),
        seconds=seconds or None,
        at_most=True,
        timed=not many,
    )


def _where(f: Function, line: Frame | None) -> dict[str, Field]:
    """Return fields of a message: the name of the function that has the loop at ``line``, and, if that is
    another function, a clause that names ``f``, in whose program the loop is."""
    scopes = line.function.split(".<locals>.") if line is not None else []
    names = [s.partition(".<")[0] for s in scopes if not s.startswith("<")]
    if not names or line is None or line.function == f.seen.qualname or names[-1] == f.seen.name:
        return {"function": f.display_name, "called": None}
    return {"function": names[-1], "called": message("unrolled-called", program=f.display_name)}


def _with_conditions(advice: Fix, text: str | None, line: Frame, largest: Repeated) -> Fix:
    """Return ``advice``, to write the loop at ``line`` as a scan, extended by the lines that test the loop's
    variable, which a scan makes an array, and by the hint that the scan may run slower.

    Args:
      text: the source of the file.
      largest: the largest block of operations that the loop repeats.
    """
    names = changed_through_methods(text, line.line)
    if names:
        advice = extended(advice, "fix-object-in-scan", names=Names(names)) or advice
    found = tests_of_target(text, line.line)
    if found:
        test = found[0]
        place = message("iteration-outside")
        if test.first is not None:
            place = message("iteration-before") if test.first else message("iteration-after")
        advice = extended(
            advice,
            "fix-tests-of-index",
            line=Frame(line.file, test.line, line.function),
            expression=test.text,
            place=place,
        )
    return advice if largest.grows else extended(advice, "fix-scan-and-measure")


def _caller_outside_jit(run: Run, line: Frame | None) -> Frame | None:
    """Return the user's line that calls the function with the loop at ``line`` outside jit and repeatedly;
    None if there is none. A scan with a new body would compile in each such call."""
    loop = loop_around(sources.of(run)(line.file), line.line) if line is not None else None
    if line is None or loop is None:
        return None
    for c in run.compilations.values():
        inside = c.function.operation and any(
            at.file == line.file and at.function == line.function and loop[0] <= at.line <= loop[1]
            for at in c.lines[:1]
        )
        repeated = any(in_a_loop(sources.of(run)(at.file), at.line) for at in c.lines[1:])
        if inside and repeated:
            return c.lines[1]
    return None


def _saves_enough(blocks: Sequence[_Block], shares: Sequence[float]) -> bool:
    """Return whether it is worth to write the loop that repeats ``blocks`` in another way. It is not if the
    iterations are small and independent, unless vmap makes larger matrix products of them. ``shares`` are
    the shares of the operations of each program that this would save."""
    repeated = [b.repeated for b in blocks]
    if any(r.carried or r.length >= LARGE_TURN for r in repeated):
        return True
    operations = sum(r.length * r.times for r in repeated if r.heavy)
    return operations >= LARGE_TURN * TURNS and any(share >= SMALL_TURNS for share in shares)


def _repeated_draws(run: Run) -> Iterator[Finding]:
    """Yield findings about programs that create parameters one after the other: they draw random numbers of
    the same shape many times, and XLA compiles each of these draws."""
    for p, f, texts in costliest(run):
        drawn = texts.stablehlo.repeated_draws if texts.stablehlo is not None else None
        text_of = sources.of(run)
        if any(in_a_loop(text_of(at.file), at.line) for c in p.compilations for at in c.lines):
            continue  # outside jit, each of many calls takes longer
        if drawn is None or drawn.draws - drawn.different < FEW_DRAWS or not _draws(run, p):
            continue
        seconds = _seconds(run, p, f) * (1 - drawn.different / drawn.draws)
        if seconds < MOST_DRAWS * total_seconds(run):
            continue
        text = message(
            "repeated-draws",
            function=f.display_name,
            draws=drawn.draws,
            different=Count(drawn.different, "shape or distribution", "different shapes or distributions"),
        )
        yield Finding(
            code="JX202",
            severity=WARNING,
            certainty=LIKELY,
            **about(p, f, text, drawn.source),
            fix=Fix(message("fix-repeated-draws", function=f.display_name), "vmap"),
            seconds=seconds,
            at_most=True,
        )


def _others(run: Run) -> Iterator[tuple[Program, Function, Texts]]:
    """Yield (program, function, analyzed texts) for the programs of the user's functions that ``costliest``
    leaves out although they are no recompiles: for example the program of a call, and that of its gradient
    outside jit."""
    known = {id(p) for p, *_ in costliest(run)}
    left: dict[str, list[Program]] = {}
    for p in run.programs.values():
        if p.function is not None and p.function.user and p.texts and id(p) not in known:
            left.setdefault(p.function.id, []).append(p)
    for programs in left.values():
        f = programs[0].function
        again = {c.id for c in recompilations(f, run)} if f is not None else set[str]()
        for p in programs:
            if f is not None and any(c.id not in again for c in p.compilations):
                yield p, f, run.texts_of(p)


def _of_libraries(run: Run) -> Iterator[tuple[Program, Function, Texts]]:
    """Yield (program, function, analyzed texts) for functions of libraries other than JAX, which may contain
    the user's functions: a model that a sampler runs."""
    for p in run.programs.values():
        if p.function is not None and not p.function.user and p.texts:
            yield p, p.function, run.texts_of(p)


def _many_turns(r: Repeated) -> bool:
    return r.times >= TURNS and r.length >= TURN


def _independent(run: Run, r: Repeated) -> bool:
    """Return whether the block of operations ``r``, whose repetitions use no results of each other, is the
    body of a loop in the user's source, such as a loop over the tasks of a batch."""
    source = r.source
    if source is None or STANDING(source.file) != Standing.USER:
        return False
    return in_a_loop(sources.of(run)(source.file), source.line)


def _draws(run: Run, p: Program) -> bool:
    """Return whether the program ``p`` mostly computes random numbers, such as the initial parameters of a
    model: it multiplies no matrices, and many of its operations are those of a random number generator. False
    for a simulation."""
    if p.function is not None and p.function.id in _simulations(run):
        return False
    counts, total = _operations(run, p)
    return not any(counts.get(name) for name in PRODUCTS) and (
        sum(counts.get(name, 0) for name in OF_RANDOM_BITS) >= DRAWN * total > 0
    )


def _operations(run: Run, p: Program) -> tuple[dict[str, int], int]:
    """Return ({name: number} of the operations of ``p``, their sum without constants and calls)."""
    read = run.texts_of(p).stablehlo
    counts = {} if read is None else read.op_counts
    return counts, sum(n for name, n in counts.items() if name not in CONSTANTS | CALLS)


@cached_until_changed
def _simulations(run: Run) -> set[str]:
    """Return the ids of the user's functions with a program that simulates (``_simulates``)."""
    return {f.id for p, f, texts in (*costliest(run), *_others(run)) if _simulates(texts)}


def _simulates(texts: Texts) -> bool:
    """Return whether a program draws random numbers in the iterations of a loop that pass on their results,
    and returns few of its many values."""
    read = texts.stablehlo
    drawn = read.repeated_draws if read is not None else None
    if read is None or drawn is None or FEW_RESULTS * len(read.results) > drawn.draws:
        return False
    return any(r.carried and 2 * r.times * drawn.different > drawn.draws for r in read.repeated)


def _instead_of_unrolling(run: Run, blocks: Sequence[Repeated], line: Frame | None) -> Fix:
    """Return advice on how to write the loop at ``line``, which repeats the blocks of operations ``blocks``
    (the largest first): as a scan, with vmap, or without the loop."""
    if blocks[0].grows:
        attends = line is not None and ATTENTION.search(sources.of(run)(line.file) or "") is not None
        cache = message("or-key-value-cache") if attends else None
        return Fix(message("fix-final-length-then-scan", cache=cache), "scan")
    if line is not None and takes_chunks(sources.of(run)(line.file), line.line):
        return Fix(message("fix-without-chunks"), "vmap")
    forward = [r for r in blocks if not r.backward]
    if forward and all(r.summed or not r.carried for r in forward):
        summed = any(r.summed for r in forward)
        return Fix(message("fix-vmap-iterations" if summed else "fix-vmap-without-sums"), "vmap")
    library = next((r.library for r in blocks if r.library), None)
    text = sources.of(run)(line.file) if line is not None else None
    if library is None and line is not None and counts_only(text, line.line):
        words = message("fix-same-iterations", same=spelling(library).same)
        if appended(text, line.line):
            words = message("fix-same-iterations-collected", output=_appended(text, line.line))
        return Fix(words, "scan", {"library": library})
    over = arrays_iterated(text, line.line) if line is not None and library != LINEN else None
    if over is not None and forward and line is not None:
        output = message("scan-output-or-none")
        if appended(text, line.line):
            output = _appended(text, line.line)
        if writes_elements(text, line.line):
            output = message("scan-collects-elements")
        scan = spelling(library).scan
        words = message("fix-scan-over", scan=scan, **_scanned(over, text, line.line), output=output)
        return Fix(words, "scan", {"scan": scan, "library": library})
    in_module = line is not None and line.function.rpartition(".")[2] in ("__call__", "setup")
    return _scan(library if library != LINEN or in_module else None, blocks[0].times)


def _scanned(over: Iterated, text: str | None, line: int) -> dict[str, Field]:
    """Return fields of the advice to write the loop at ``line`` as a scan over ``over``. ``text`` is the
    source of the file."""
    array = over.arrays[0] if len(over.arrays) == 1 else f"({', '.join(over.arrays)})"
    names = [a for a in over.arrays if a.isidentifier() and not holds_array(text, line, a)]
    listed = None
    if names:
        certain = holds_array(text, line, names[0]) is False and len(over.arrays) == 1
        listed = message("scan-stack-this-list" if certain else "scan-stack-first", name=names[0])
    return {
        "array": array,
        "listed": listed if len(names) < 2 else message("scan-stack-each"),
        "shifted": message("scan-shifted", element=over.shifted) if over.shifted is not None else None,
        "reverse": message("scan-reversed") if over.reverse else None,
    }


def _appended(text: str | None, line: int) -> Message:
    """Return a clause about a list to which the loop at ``line`` appends; ``text`` is the file's source."""
    return message("scan-collects", first=None if begin_empty(text, line) else message("scan-first-elements"))


def _scan(library: str | None, times: int) -> Fix:
    """Return the advice to write a loop of ``times`` iterations as a scan. ``library`` is the library whose
    modules the loop calls and which may have its own scan: ``hk.scan`` for Haiku; None: there is none."""
    if library == LINEN:
        return Fix(message("fix-scan-modules", times=times), "scan", {"scan": "nn.scan", "library": library})
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
      blocks: the blocks of operations that such loops repeat.
    """
    found = []
    for p, f in dict.fromkeys((p, f) for p, f, _ in blocks):
        _, total = _operations(run, p)
        own = [r for q, _, r in blocks if q is p]
        outer = [r for r in own if not any(o is not r and o.first <= r.first and r.end <= o.end for o in own)]
        if total:
            found.append((p, f, min(1.0, sum(r.length * (r.times - 1) for r in outer) / total)))
    return found


def _seconds(run: Run, p: Program, f: Function) -> float:
    """Return the seconds of all compilations of the program ``p`` (tracing, lowering and compiling) that are
    not recompiles of its function ``f``."""
    again = {c.id for c in recompilations(f, run)}
    return sum(c.seconds for c in p.compilations if c.id not in again)


def _in_library(run: Run, f: Function, r: Repeated) -> bool:
    """Return whether a library, and not the user's code, repeats the block of operations ``r`` in the program
    of ``f``, so that the user cannot change the loop. False if that is unknown."""
    sites = [c.site for c in f.compilations if c.site is not None and STANDING(c.site.file) == Standing.USER]
    if r.source is None or not sites:
        return False
    called = f.seen.file is not None and STANDING(f.seen.file) != Standing.USER
    text = sources.of(run)
    if called and not any(in_a_loop(text(at.file), at.line) for at in r.under):
        return True
    at_the_call = called and r.source.place in {s.place for s in sites}
    return at_the_call or STANDING(r.source.file) != Standing.USER


def _line(run: Run, f: Function, r: Repeated, others: Sequence[Repeated]) -> Frame | None:
    """Return the line in a loop whose repetition made the block of operations ``r``; None if it is unknown.
    For a block of the backward pass, return the line of the corresponding block of the forward pass.

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
    if own is not None and any(same_line(c.site, own) for c in f.compilations):
        return _only_loop(run, f) or own
    return _in_a_loop(run, f, r) or own


def _only_loop(run: Run, f: Function) -> Frame | None:
    """Return the line of the loop in the source of ``f`` if there is only one (inner loops do not count);
    None if there are several or none, or if the source is unknown."""
    seen = f.seen
    source = sources.of(run)(seen.file) if seen.file is not None else None
    line = only_loop(source, seen.name, seen.line) if seen.line is not None else None
    return Frame(seen.file, line, seen.qualname) if line is not None and seen.file is not None else None


def _in_a_loop(run: Run, f: Function, r: Repeated) -> Frame | None:
    """Return the innermost line in a Python loop that leads to the block of operations ``r``, without the
    lines of loops inside that loop. Return the outermost such line if the arrays of the block grow from
    iteration to iteration, and None if there is no loop between the call of ``f`` and the block."""
    calls = {c.site.place for c in f.compilations if c.site is not None}
    text = sources.of(run)
    inside = [r.source] if r.source is not None and r.source not in r.under else []
    found = None
    for at in [*inside, *reversed(r.under)]:
        if at.place in calls:
            break
        if in_a_loop(text(at.file), at.line):
            found = at
            if not r.grows and at not in r.inner:
                break
    return found


def _innermost(r: Repeated) -> Frame | None:
    """Return the user's line that was executed repeatedly and so made the block of operations ``r``; None if
    unknown. If the whole block comes from one line in a helper, return that line, which is the same for all
    callers of the helper."""
    return r.under[-1] if r.source in r.under else r.source


def _repeated(b: _Block) -> list[Evidence]:
    r = b.repeated
    text = message("repeated-block", operations=r.length, times=r.times, function=b.function.display_name)
    return evidence(b.program, text, r.source)


def _share(run: Run, p: Program, f: Function, share: float) -> list[Evidence]:
    spent = _seconds(run, p, f)
    if not spent:
        return []  # a recompile, whose seconds are those of another finding
    seconds = Seconds(spent)
    text = message("repeated-share", function=f.display_name, share=Percent(share), seconds=seconds)
    return evidence(p, text, None)
