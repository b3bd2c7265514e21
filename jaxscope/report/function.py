"""Print everything about one function: its cache keys (the values that JAX compares to find a trace or a
program it can reuse), how they differ, its shardings and programs.

Parts of the keys that are equal in all compilations are printed once, the other parts for each compilation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console

from jaxscope.analysis.paths import below, common_prefix, tokens
from jaxscope.log.store import RunDir
from jaxscope.model import devices, sharding_audit, target_programs
from jaxscope.model.causes import compared
from jaxscope.model.function_lookup import find_compilations
from jaxscope.model.records import Comparison, Compilation, Function
from jaxscope.model.run import Run
from jaxscope.present.causes import explanations, first_and_more
from jaxscope.present.escape import escape
from jaxscope.present.functions import nearest_name, phases, unusual, when_and_where, work
from jaxscope.present.keys import OF_EVERY_CALL, Row, changed, key_rows
from jaxscope.present.programs import memory_of
from jaxscope.present.runs import verb
from jaxscope.present.text import Places, count, seconds, size, wrapper_name
from jaxscope.report import compiled_program, targets, targets_section, variants
from jaxscope.report import sharding_audit as intents
from jaxscope.report.function_summary import heading
from jaxscope.report.layout import BLANK, Line, line, put

KEYS = 10  # keys that are printed without --all
ROWS = 16  # with more rows, those of one argument are combined
VALUE = 100  # longer values are cut
MUCH = 0.1  # a smaller share of a device's memory is not reported

Groups = list[tuple[str, list[str]]]  # label, and the names of the rows that it combines


def render_function(
    run: Run, name: str, to: Console, directory: RunDir | None = None, *, everything: bool = False
) -> None:
    """Print the functions that ``name`` means, usually one, to the console ``to``: their compilations, keys
    and programs.

    Args:
      name: the name of a function (``step``), the end of its qualified name, its id or its ``file:line``; or
        one of these with the number of a compilation (``step#3``).
      directory: the directory of the run; None: unknown. The output then lacks the programs with other
        settings and other numbers of devices (``run --vary``).
      everything: print all rows and whole texts (``--all``); else, long lists and texts are shortened.

    Raises:
      UsageError: there is no such function or compilation; the hint names similar ones.
    """
    functions, number = find_compilations(run, name)
    places = Places(run, whole=True)
    for i, f in enumerate(functions):
        if i:
            put(to, [BLANK])
        put(to, _function(run, f, number, places, everything=everything))
        put(to, targets_section.of_function(f, variants.of(run, directory), to.width))


def _function(
    run: Run, f: Function, number: int | None, places: Places, *, everything: bool
) -> Iterator[Line]:
    """Yield the lines about the function ``f``: its work, cache keys, shardings and programs. ``number``
    selects one compilation; None: all."""
    yield line(*heading(f, places), right=(seconds(f.seconds), "bold"), hang=2)
    kind = [escape(f.seen.form)] if f.seen.form != "def" else []
    kind += ["inside a library"] if f.seen.library else []
    kind += ["eager operation"] if f.seen.eager else []
    kind += [f"through {', '.join(map(wrapper_name, f.seen.wrappers))}"] if f.seen.wrappers else []
    kind += [f"captures {escape(', '.join(f.seen.captures), 200)}"] if f.seen.captures else []
    if f.seen.signature:
        yield line((f"{escape(f.seen.name)}{escape(f.seen.signature, 300)}", "dim"), indent=4, hang=4)
    yield line(" · ".join([*kind, work(f)]), indent=4, hang=2)
    shown = [(n, c) for n, c in run.numbered(f) if number is None or n == number]
    total = len(shown)
    if not everything and number is None and total > KEYS:
        shown = shown[: KEYS // 2] + shown[-KEYS // 2 :]
    found = [(n, c, compared(run, c)) for n, c in shown]
    facts = [k.facts for _, _, k in found if k is not None]
    if number is not None:
        facts += [k.nearest_facts for _, _, k in found if k is not None and k.nearest_facts is not None]
    rows = [key_rows(f) for f in facts]
    same, varying = groups_of(rows, everything=everything)
    before = 0
    for n, c, comparison in found:
        if before and n != before + 1:
            yield BLANK
            yield line((f"{count(n - before - 1, 'key')} left out: --all shows them", "dim"))
        before = n
        yield BLANK
        yield from _key(run, n, c, comparison, varying, places, everything=everything)
    if same:
        yield BLANK
        yield line((title_of_same(len(rows)), "title"))
        yield from _table(
            [(label, text_of(names, rows[0]), False) for label, names in same], everything=everything
        )
    yield from shardings(run, f, shown, number, places, everything=everything)
    yield from _program(run, shown, places, everything=everything)
    yield from _target_programs(run, f, places, everything=everything)
    slow = [c for c in f.compilations if c.only_missed]
    if slow and number is None:
        yield from _slow(run, slow, places, everything=everything)


def shardings(
    run: Run, f: Function, shown: Sequence[tuple[int, Compilation]], number: int | None, places: Places, *,
    everything: bool,
) -> Iterator[Line]:  # fmt: skip
    """Yield lines with the requested, the compiled and the actual sharding of each argument and result, for
    the latest call in ``shown`` that compiled ``f``. Yield nothing if they cannot differ.

    Args:
      shown: (number, compilation) for each compilation of ``f`` that the output shows.
      number: the number of the compilation that the user asked to see; None: all.
      places: shortens file names.
      everything: also yield lines for a program on one device, and list all rows (``--all``).
    """
    n, c = next(((n, c) for n, c in reversed(shown) if c.compiled is not None), (0, None))
    if c is None:
        return
    if not sharding_audit.at_stake(c) or (sharding_audit.on_one_device(c) and not everything):
        return
    latest = sharding_audit.latest(run, f) if number is None else None
    audited = latest[1] if latest is not None and latest[0] is c else sharding_audit.of_compilation(run, c)
    yield BLANK
    yield line((f"Requested, compiled and actual shardings of #{n}", "title"))
    yield from intents.section(audited, places, everything=everything)


def _program(
    run: Run, shown: Sequence[tuple[int, Compilation]], places: Places, *, everything: bool
) -> Iterator[Line]:
    """Yield lines about the compiled program of one compilation: the latest in ``shown`` whose program text
    was recorded. ``shown`` has (number, compilation) for each compilation that the output shows."""
    for n, c in reversed(shown):
        program = run.programs.get(c.program or "")
        texts = run.texts_of(program) if program is not None else None
        if texts is not None and (texts.hlo is not None or texts.stablehlo is not None):
            yield BLANK
            yield line((f"Compiled program of #{n}", "title"))
            yield from compiled_program.section(texts, memory_of(c), places, everything=everything)
            yield from _memory_fit(c, everything=everything)
            return


def _target_programs(run: Run, f: Function, places: Places, *, everything: bool) -> Iterator[Line]:
    """Yield lines about the programs that were compiled from ``f`` for targets (machines given with
    ``--target``)."""
    for p in next((ps for g, ps in target_programs.of_run(run) if g is f), []):
        yield BLANK
        yield line((f"Compiled for {escape(p.target or '?', 40)}", "title"))
        yield from targets.with_contents(run, p, places, everything=everything)


def _memory_fit(c: Compilation, *, everything: bool) -> Iterator[Line]:
    """Yield a line that compares the memory of a device with what the program and the other live arrays need.
    Yield nothing if this is unknown, or if they need less than a tenth (MUCH) of it and ``everything`` is
    false."""
    w = devices.want(c)
    if w is None or not (everything or w.wanted >= MUCH * w.capacity):
        return
    others = f" plus {size(w.beside)} in other live arrays" if w.beside else ""
    whose = f" shared by {w.shared_by} devices of the host" if w.shared_by > 1 else " of the host" * w.host
    yield line(
        ("memory fit", "bold"),
        f"  peak {size(w.peak)}{others}, of {size(w.capacity)}{whose}",
        ("" if w.fits else ": does not fit", "error"),
        indent=2,
        hang=4,
    )


def _key(
    run: Run,
    n: int,
    c: Compilation,
    comparison: Comparison | None,
    varying: Groups,
    places: Places,
    *,
    everything: bool,
) -> Iterator[Line]:
    """Yield the lines about one compilation: its seconds and line, why it recompiled, and the parts of its
    cache key that vary between compilations (``varying``)."""
    again = comparison is not None and comparison.nearest is not None
    yield line((f"#{n}", "warning" if again else "bold"), f"  {' · '.join(_facts(run, c))}", hang=4)
    yield line((" · ".join(_where(run, c, places)), "dim"), indent=4, hang=2)
    if comparison is None:
        yield line(("cache key not recorded", "warning"), indent=4)
        return
    if comparison.nearest is not None:
        nearest = nearest_name(run, comparison.nearest)
        causes = explanations(run, c)
        for i, cause in enumerate(causes if everything else first_and_more(causes, ROWS)):
            compared_with = f"compared with {nearest}: " if i == 0 else "  "
            yield line((compared_with, "dim"), (cause, "warning"), indent=4, hang=4)
    now = key_rows(comparison.facts)
    was = key_rows(comparison.nearest_facts) if comparison.nearest_facts is not None else now
    table = [
        (label, text_of(names, now), any(changed(x, was, now) for x in names)) for label, names in varying
    ]
    yield from _table(table, everything=everything)


def _facts(run: Run, c: Compilation) -> Iterator[str]:
    """Yield texts about the compilation ``c``: its step, its seconds by phase, what is unusual about it, and
    which phase is still in progress."""
    parts = phases(c)
    if c.step is not None:
        yield f"step {c.step:,}"
    if parts:
        by_phase = f" ({', '.join(parts)})" if len(parts) > 1 else f" of {parts[0].split()[0]}"
        yield seconds(c.seconds) + by_phase
    if cache := unusual(c):
        yield cache
    open_phase = next((p for p in run.in_progress() if p.compilation is c), None)
    if open_phase is not None and run.last_ns is not None:
        spent_so_far = seconds(max(0, run.last_ns - open_phase.since_ns) / 1e9)
        yield f"{verb(open_phase.phase)} for {spent_so_far}"


def _where(run: Run, c: Compilation, places: Places) -> Iterator[str]:
    """Yield texts about the compilation ``c``: the user's line, the time in the run, and why the persistent
    cache lacked or did not store its program. What is unknown is left out."""
    if site := places.inside(c.site):
        yield site
    if (at := run.seconds_at(c.t_ns)) is not None:
        yield f"{seconds(at)} into the run"
    # "off" is not printed, because the persistent cache is then off for all compilations.
    if c.compiled is not None and c.compiled.persistent_cache_reason and c.compiled.persistent_cache != "off":
        yield (
            f"persistent cache: {escape(c.compiled.persistent_cache)},"
            f" {escape(c.compiled.persistent_cache_reason, 200)}"
        )


def groups_of(rows: Sequence[Row], *, everything: bool) -> tuple[Groups, Groups]:
    """Divide the rows of several cache keys into rows that are equal in all keys, and rows that vary. Return
    (equal rows, varying rows), each as a list of (label, names of the rows that are printed as one line with
    this label).

    Four or more settings, or parts of one argument, may share a line. The row ``tree`` is missing if it is
    equal in all keys.

    Args:
      rows: for each key a dict: name of the row (``state.params['w']``) -> text.
      everything: a line for each row, and no row is missing (``--all``).
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    groups: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    many = len([n for n in names if not n.startswith("setting ")]) > ROWS
    for name in names:
        texts = [row.get(name) for row in rows]
        pattern = tuple(texts.index(t) for t in texts)  # for each key, the first with an equal text
        if everything:
            root = name
        elif name == "tree" and not any(pattern):
            continue  # the tree definition is long, and the arguments show the same
        elif name.startswith("setting ") and not any(pattern):
            root = "setting "
        else:
            root = tokens(name)[0] if many and len(tokens(name)) > 1 else name
        groups.setdefault((root, pattern), []).append(name)
    same: Groups = []
    varying: Groups = []
    for (_, pattern), members in groups.items():
        goes_to = varying if any(pattern) else same
        if len(members) < 4:
            goes_to += [(name, [name]) for name in members]
        else:
            label = "settings"
            if not members[0].startswith("setting "):
                label = common_prefix(members) or "arguments"
                if any(below(name, {label}) for name in {*names} - {*members}):
                    label = f"part of {label}"
            goes_to.append((label, members))
    return same, varying


def title_of_same(keys: int) -> str:
    """Return the title of the table of rows that are equal in all cache keys. ``keys`` is the number of
    keys."""
    return {1: "Cache key", 2: "Same in both keys"}.get(keys, f"Same in all {keys} keys")


def text_of(names: Sequence[str], row: Row) -> str:
    """Return the text of a line that stands for the rows ``names`` of a cache key: the text of the only row,
    or a summary of several: ``12 leaves: f32[8], f32[8,4]``. ``row`` is the cache key as {name of a row:
    text}."""
    if len(names) == 1:
        return row.get(names[0], "not recorded" if names[0] in OF_EVERY_CALL else "absent")
    if names[0].startswith("setting "):
        return f"{len(names)}: --all shows them"
    texts = [row[n] for n in names if n in row]
    if not texts:
        return "absent"
    kinds = list(dict.fromkeys(texts))
    if len(kinds) > 3:
        kinds = list(dict.fromkeys(t.partition("[")[0] + "[…]" for t in texts))
    more = ", …" if len(kinds) > 3 else ""
    return f"{count(len(texts), 'leaf', 'leaves')}: {', '.join(kinds[:3])}{more}"


def _table(rows: Sequence[tuple[str, str, bool]], *, everything: bool) -> Iterator[Line]:
    """Yield rows of a cache key as aligned lines. Each of ``rows`` is (name, text, whether it changed).
    ``everything`` (``--all``) yields all rows, also of a long table."""
    every = len(rows)
    if not everything and every > 2 * ROWS:
        rows = [r for r in rows if r[2]][: 2 * ROWS] or rows[: 2 * ROWS]
    left = every - len(rows)
    names = [escape(name, 60).strip() for name, _, _ in rows]
    width = min(34, max((cell_len(n) for n in names), default=0))
    for name, (_, value, differs) in zip(names, rows, strict=True):
        pad = " " * max(0, width - cell_len(name))
        yield line(
            (name + pad, "warning" if differs else ""),
            "  ",
            (escape(value, 4000 if everything else VALUE), "warning" if differs else "dim"),
            ("  (changed)" if differs else "", "warning"),
            indent=4,
            hang=min(width, 34) + 2,
        )
    if left:
        yield line((f"and {left:,} more rows: --all shows them", "dim"), indent=4)


def _slow(run: Run, slow: list[Compilation], places: Places, *, everything: bool) -> Iterator[Line]:
    """Yield lines about ``slow``, the calls that missed JAX's fast path without tracing, lowering or
    compiling: the first five, or all with ``everything`` (``--all``)."""
    yield BLANK
    title = f"{count(len(slow), 'call')} that missed JAX's fast path without tracing or compiling"
    yield line((title, "title"))
    for c in slow if everything else slow[:5]:
        yield line(
            explanations(run, c)[0],
            (f"  ({when_and_where(c, places)})", "dim"),
            indent=2,
            hang=4,
        )
    if len(slow) > 5 and not everything:
        yield line((f"and {len(slow) - 5:,} more: --all shows them", "dim"), indent=2)
