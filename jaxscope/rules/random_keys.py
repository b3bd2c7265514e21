"""Rules about keys of jax.random: JX134, JX136 and JX139 (random numbers that are the same in each call, on
each device, or for each element of a vmap), JX137 (several draws from one key) and a part of JX135 (the same
draws in each iteration of a loop)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from jaxscope.analysis import key_reuse, line_names, numpy_draws, returned_keys
from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.key_reuse import Repeated, Reused
from jaxscope.analysis.padded_indices import Wrapped
from jaxscope.analysis.returned_keys import ReturnedKey
from jaxscope.analysis.source_lines import in_a_loop
from jaxscope.analysis.stablehlo.random_draws import LoopDraws
from jaxscope.analysis.syntax import last_name, syntax
from jaxscope.model import sources
from jaxscope.model.records import Compilation, Function, cached_until_changed
from jaxscope.model.run import Run
from jaxscope.rules.each_program import users
from jaxscope.rules.finding_parts import about, at_line
from jaxscope.rules.line_lists import known_lines, on_lines
from jaxscope.rules.registry import rule
from jaxscope.schema.file_owner import STANDING, Standing
from jaxscope.schema.findings import CERTAIN, LIKELY, NOTE, WARNING, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Field, Message, Names, message

VMAPS = frozenset({"vmap", "filter_vmap"})
Found = TypeVar("Found", Repeated, ReturnedKey, Reused, Wrapped)  # what ``found_where_run`` yields
LINES = 4  # lines and functions that a finding names
# Names of functions for evaluation, which may draw the same numbers each time on purpose.
_EVALUATION = re.compile(r"(?:^|_)(?:eval|evaluate|evaluation|valid|validate|validation|test)(?:_|$)")


@rule("JX134", "constant-random-key", WARNING)
def constant_random_key(run: Run) -> Iterator[Finding]:
    """Yield findings about functions that draw the same random numbers in each call: from a captured key or a
    fixed seed, or with NumPy while they are traced."""
    changed = {(s.function.id, s.changed.name) for s in run.stale}  # keys that JX131 reports
    for f in run.functions.values():
        traced = [c for c in f.compilations if c.traced is not None] if f.user else []
        last = traced[-1] if traced else None
        if last is None or last.traced is None or last.site is None or not _called_again(run, f):
            continue
        numpy = _drawn_while_traced(run, f, last)
        if numpy is not None:
            yield numpy
        drawn = [c for c in last.traced.captured or () if c.draws and (f.id, c.name) not in changed]
        # A function without arguments computes one value, whatever it draws. A call inside another trace has
        # no key: how often its program runs is unknown.
        if drawn and _draws_nothing(run, last):
            drawn = []
        if last.key is None or not last.key.arguments or not (drawn or last.traced.seeded_noise):
            continue
        names = tuple(dict.fromkeys(c.name for c in drawn if c.name))
        unnamed = message("unnamed-key") if drawn else message("seeded-key")
        text = message(
            "constant-random-key",
            function=f.display_name,
            keys=Names(names, 3) if names else unnamed,
            is_constant="are constants" if len(names) > 1 else "is a constant",
        )
        yield Finding(
            code="JX134",
            severity=NOTE if _EVALUATION.search(f.seen.name) else WARNING,
            certainty=LIKELY,
            **at_line(text, last.site, last),
            function=f.id,
            fix=Fix(message("fix-pass-key"), "pass_argument", {"name": names[0] if names else None}),
        )


def _draws_nothing(run: Run, c: Compilation) -> bool:
    """Return whether the program of the call ``c`` has no random key as a constant. False if the program's
    text is unknown."""
    lowered = run.stablehlo(c)
    return lowered is not None and bool(lowered.op_counts) and not lowered.captures_key


def _drawn_while_traced(run: Run, f: Function, last: Compilation) -> Finding | None:
    """Return a finding if the body of ``f``, or a function of the same file that it uses, draws random
    numbers with NumPy or with Python's ``random``. None if they draw none or call back into Python, if ``f``
    has no arguments, or if its source or arguments are unknown. ``last`` is the latest call that traced
    ``f``."""
    if f.seen.file is None or f.seen.line is None or last.key is None or not last.key.arguments:
        return None
    found = numpy_draws.find(sources.of(run)(f.seen.file), f.seen.name, f.seen.line)
    if found is None:
        return None
    others = Names(tuple(map(str, found.others)), LINES) if found.others else None
    also = message("draws-on-lines", lines=others) if len(found.others) > 1 else None
    if len(found.others) == 1:
        also = message("draws-on-line", line=others)
    text = message("drawn-while-traced", function=f.display_name, call=found.call, also=also)
    own = found.function == f.seen.name
    at = Frame(f.seen.file, found.line, f.seen.qualname if own else found.function)
    return Finding(
        code="JX134",
        severity=WARNING,
        certainty=LIKELY,
        **at_line(text, at, last),
        function=f.id,
        fix=Fix(message("fix-draw-with-jax"), "pass_argument"),
        subject=found.call,
    )


@rule("JX136", "same-numbers-on-devices", NOTE)
def same_numbers_on_devices(run: Run) -> Iterator[Finding]:
    for f in run.functions.values():
        traced = [c for c in f.compilations if c.traced is not None] if f.user else []
        last = traced[-1] if traced else None
        if last is None or last.traced is None:
            continue
        for path in last.traced.draws_alike or ():
            text = message("same-numbers-on-devices", function=f.display_name, key=path)
            yield Finding(
                code="JX136",
                severity=NOTE,
                certainty=CERTAIN,
                **at_line(text, last.site, last),
                function=f.id,
                fix=Fix(message("fix-fold-device", key=path), "fold_in", {"name": path}),
                path=path,
            )


@rule("JX139", "one-key-under-vmap", NOTE)
def one_key_under_vmap(run: Run) -> Iterator[Finding]:
    seen: set[object] = set()
    for p, f, texts in users(run):
        c = p.compilations[-1]
        for draws in texts.stablehlo.shared_draws if texts.stablehlo is not None else ():
            applied = _vmap_of(run, draws.source)
            at = applied or draws.source or c.site
            same = applied or f.id  # one finding for all draws of a function
            if at is None or same in seen or not (draws.in_loop or _called_again(run, f)):
                continue
            seen.add(same)
            names = tuple(f"jax.random.{name[1:]}" for name in draws.functions)
            text = message("one-key-under-vmap", function=f.display_name, draws=Names(names, LINES))
            yield Finding(
                code="JX139",
                severity=NOTE,
                certainty=LIKELY,
                **about(p, f, text, at),
                fix=Fix(message("fix-key-for-each-element"), "split_key"),
                subject=(at,),
            )


def _vmap_of(run: Run, draw: Frame | None) -> Frame | None:
    """Return the line that applies ``vmap`` to the function that contains the line ``draw``. Return None if
    no line of the file does, or if several do."""
    source = sources.of(run)(draw.file) if draw is not None else None
    if draw is None:
        return None
    function = draw.function.rpartition(".")[2]
    lines = {
        line
        for line, calls in syntax(source).calls.items()
        for c in calls
        if last_name(c.func) in VMAPS and c.args and last_name(c.args[0]) == function
    }
    return Frame(draw.file, lines.pop(), "") if len(lines) == 1 else None


def _called_again(run: Run, f: Function) -> bool:
    """Return whether ``f`` is called more than once. If its calls are not counted, the answer is taken from
    the source: True if the call is in a loop, or if several lines call ``f``."""
    calls = max(f.counted_calls.values(), default=None)
    if calls is not None:
        return calls > 1
    lines = {c.site.place for c in f.compilations if c.site is not None and c.entry == "call"}
    return len(lines) > 1 or any(in_a_loop(sources.of(run)(file), line) for file, line in lines)


@rule("JX137", "two-draws-from-one-key", WARNING)
def two_draws_from_one_key(run: Run) -> Iterator[Finding]:
    repeated = {pair for (file, _), draws in _repeated(run).items() if (pair := _pair_in(run, file, draws))}
    for file, pair in ((file, pair) for file, pairs in _drawn_twice(run).items() for pair in pairs):
        if pair in repeated:
            continue  # JX135
        fields: dict[str, Field] = {
            "where": on_lines(Names(tuple(dict.fromkeys(map(str, pair.lines))), LINES)),
            "n": len(pair.lines),
            "functions": Names(tuple(dict.fromkeys(pair.calls)), LINES),
            "how": message("equal-numbers" if pair.equal else "dependent-numbers"),
        }
        text = message("two-draws-from-one-key", key=pair.key, **fields)
        if pair.split is not None:
            text = message("same-part-of-splits", key=pair.split, part=pair.key, **fields)
        yield Finding(
            code="JX137",
            severity=WARNING,
            certainty=LIKELY,
            **at_line(text, Frame(file, pair.lines[1], pair.function)),
            fix=Fix(_split(sources.of(run)(file), pair), "split_key", {"name": pair.key}),
            subject=(pair.function, pair.key),
        )
    yield from _drawn_and_returned(run)


def _drawn_and_returned(run: Run) -> Iterator[Finding]:
    """Yield findings about functions that return a key from which they have drawn, and whose next call draws
    from it again."""
    for file, one in found_where_run(run, returned_keys.find):
        fields: dict[str, Field] = {"drawn": one.drawn, "call": one.call, "again": one.again}
        text = message("key-drawn-and-returned", function=one.function, key=one.key, **fields)
        subkeys = "subkey" if one.drawn == one.again else "subkey1, subkey2"
        words = message(
            "fix-return-unused-key",
            key=one.parameter,
            subkeys=subkeys,
            n=", 3" if "," in subkeys else None,
        )
        yield Finding(
            code="JX137",
            severity=WARNING,
            certainty=LIKELY,
            **at_line(text, Frame(file, one.drawn, one.function)),
            fix=Fix(words, "split_key", {"name": one.key}),
            subject=(one.function, one.key, "returned"),
        )


def _defining(run: Run, files: Collection[str], module: str, name: str) -> str | None:
    """Return the text of the file that defines the function ``name`` of ``module`` (``models.layers``), one
    of ``files``. If ``module`` is a package, it is the only file in the package with this function. None if
    there is none, or several."""
    path = "/" + module.replace(".", "/")
    text, names = sources.of(run), {file: f"/{file}".replace("\\", "/") for file in files}
    found = [file for file, full in names.items() if full.endswith(f"{path}.py")]
    if not found and module:
        inside = [file for file, full in names.items() if f"{path}/" in full]
        found = [file for file in inside if line_names.function(text(file), name) is not None]
    return text(found[0]) if module and len(found) == 1 else None


def draws_in_loops(run: Run) -> Iterator[Finding]:
    """Yield findings (JX135) about loops whose body draws from a random key that the loop does not change."""
    known = set[tuple[str, int]]()
    for line, finding in _from_source(run):
        known.add(line)
        yield finding
    for p, f, texts in users(run):
        lines: dict[Frame, list[LoopDraws]] = {}
        for one in texts.stablehlo.loop_draws if texts.stablehlo is not None else ():
            if one.loop.place not in known:
                lines.setdefault(one.loop, []).append(one)
        for loop, draws in lines.items():
            known.add(loop.place)
            called = tuple(dict.fromkeys(f"jax.random.{name[1:]}" for one in draws for name in one.functions))
            drawn = dict.fromkeys(one.source or loop for one in draws)
            elsewhere = any(line.file != loop.file for line in drawn)
            at = tuple(line if elsewhere else str(line.line) for line in drawn)
            text = message(
                "one-key-in-program-loop",
                function=f.display_name,
                draws=Names(called, LINES),
                lines=known_lines(at, LINES),
                loop=str(loop.line),
            )
            solver = "while_loop" in sources.line(run, loop)
            yield Finding(
                code="JX135",
                severity=NOTE if solver or _EVALUATION.search(f.seen.name) else WARNING,
                certainty=LIKELY,
                **about(p, f, text, loop),
                fix=Fix(message("fix-key-in-state", function=f.display_name), "fold_in"),
                subject=(loop,),
            )


def _from_source(run: Run) -> Iterator[tuple[tuple[str, int], Finding]]:
    """Yield (file and line of the loop, finding) for the loops in the user's source whose body draws from a
    random key that the loop does not change."""
    for (file, _), draws in _repeated(run).items():
        one, lines = draws[0], tuple(dict.fromkeys(str(d.line) for d in draws))
        calls, pair = tuple(dict.fromkeys(d.call for d in draws)), _pair_in(run, file, draws)
        loop = one.loop or message("loop-on-line", line=str(one.loop_line))
        text = message(
            "one-key-in-loop",
            calls=Names(calls, LINES),
            where=on_lines(Names(lines, LINES, "lines")),
            draw=_what_they_do(calls),
            loop=loop,
            key=one.key,
            also=message("and-from-one-key", n=len(pair.lines), key=one.key) if pair is not None else None,
        )
        fix = message("fix-key-of-iteration", key=one.key)
        if pair is not None:
            n = len(pair.lines)
            fix = message("fix-keys-of-iteration", keys=_numbered("key", n), key=one.key, n=n)
        elif one.loop is None and one.call.endswith("split"):
            fix = message("fix-split-again", key=one.key)
        elif one.loop is None:
            given = message("pass-the-number", function=one.call) if one.makes_key else None
            fix = message("fix-new-key-to-draw", key=one.key, given=given)
        yield (
            (file, one.loop_line),
            Finding(
                code="JX135",
                # A solver may need the same random numbers in each iteration.
                severity=NOTE if (one.loop or "").endswith("while_loop") else WARNING,
                certainty=LIKELY,
                **at_line(text, Frame(file, one.line, one.function)),
                fix=Fix(fix, "fold_in", {"name": one.key}),
                subject=(one.function, one.key, one.line),
            ),
        )


def _what_they_do(calls: Collection[str]) -> Message:
    """Return a clause that says what the functions ``calls`` of ``jax.random`` do with one key."""
    if all(call.endswith("split") for call in calls):
        return message("makes-the-same-keys")
    return message("draw-the-same-numbers" if len(calls) > 1 else "draws-the-same-numbers")


@cached_until_changed
def _repeated(run: Run) -> dict[tuple[str, Hashable], list[Repeated]]:
    """Return the draws that loops of JAX or of Python in the user's files repeat with the same key, by file,
    and by function, loop and key, in the order of their lines."""
    found = found_where_run(run, lambda text: [*key_reuse.in_loops(text), *key_reuse.in_python_loops(text)])
    return grouped(
        ((file, (one.function, one.loop_line, one.loop, one.key)), one)
        for file, one in sorted(found, key=lambda item: item[1].line)
    )


def _pair_in(run: Run, file: str, draws: Sequence[Repeated]) -> Reused | None:
    """Return the draws of one iteration from one key, if all are among ``draws``, which a loop of Python in
    ``file`` repeats with this key. None if there are none."""
    lines = {one.line for one in draws}
    same = (
        pair
        for pair in _drawn_twice(run).get(file, ())
        if pair.key == draws[0].key and pair.split is None and lines.issuperset(pair.lines)
    )
    return next(same, None) if draws[0].loop is None else None


@cached_until_changed
def _drawn_twice(run: Run) -> dict[str, list[Reused]]:
    """Return the draws from one random key in the user's files, by file."""
    find = partial(key_reuse.find, defining=partial(_defining, run, functions_that_ran(run)))
    return grouped(found_where_run(run, find))


def _numbered(word: str, n: int) -> str:
    """Return ``n`` names as source: ``key1, key2``; ``keys`` if they are more than LINES."""
    return ", ".join(f"{word}{i}" for i in range(1, n + 1)) if n <= LINES else "keys"


def _split(source: str | None, pair: key_reuse.Reused) -> Message:
    """Return the advice to split the key of ``pair``; for an array of keys, to split the key from which it
    was made."""
    if pair.split is not None:
        return message("fix-split-once", key=pair.split)
    many, n = key_reuse.split_before(source, pair.key, pair.lines[0]), len(pair.lines)
    names = _numbered("keys" if many is not None else "key", n)
    if many is not None:
        return message("fix-split-keys", keys=names, key=many[0], n=n, count=many[1])
    return message("fix-split-key", keys=names, key=pair.key, n=f", {n}" if n > 2 else None)


def found_where_run(run: Run, find: Callable[[str | None], list[Found]]) -> Iterator[tuple[str, Found]]:
    """Yield (file, what was found) for all that ``find`` finds in the texts of the user's files, in functions
    that may have run."""
    for file, functions in functions_that_ran(run).items():
        source = sources.of(run)(file)
        found = find(source)
        ran = key_reuse.called_in(source, functions) if found else set()
        yield from ((file, one) for one in found if one.function in ran)


def functions_that_ran(run: Run) -> dict[str, set[str]]:
    """Return {file: names of the user's functions in it that the run certainly ran or traced}: functions in
    which a call was recorded, and jitted functions. Code outside functions is named ``<module>``."""
    found: dict[str, set[str]] = {}
    for f in run.functions.values():
        frames = [at for c in f.compilations for at in c.lines]
        if f.user and f.compilations and f.seen.file is not None and f.seen.line is not None:
            frames.append(Frame(f.seen.file, f.seen.line, f.seen.qualname))
        for at in frames:
            if STANDING(at.file) == Standing.USER:
                found.setdefault(at.file, {"<module>"}).add(at.function.rpartition(".")[2])
    return found
