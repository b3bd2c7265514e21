"""Rules JX603 (a loop reads the elements of an array on the host, one at a time) and JX604 (a loop copies the
items of a batch to the device one at a time, or JAX converts a list item by item)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from jaxscope.analysis import element_reads
from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.source_lines import in_a_loop, loop_around
from jaxscope.model import line_times, payers, sources
from jaxscope.model import transfers as model
from jaxscope.model.run import Run
from jaxscope.model.transfers import NOT_ASKED, TO_DEVICE, TO_HOST, Transfer
from jaxscope.rules.finding_parts import at_line
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import LIKELY, NOTE, WARNING, Evidence, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.line_times import OPERATIONS, LineTime
from jaxscope.schema.messages import Bytes, Field, Names, Seconds, message

COPIES = frozenset({"jnp.asarray", "jnp.array", "device_put"})  # kinds of copies that the program requests
LISTS = frozenset({"jnp.asarray", "jnp.array"})
FEW_WAITS = 0.1  # share of reads longer than SHORT_S seconds, up to which they wait for another function
SHORT_S = 1e-4
FEWEST, MANY = 1_000, 10_000  # the fewest reads for a finding, and for a warning
SMALL = 64 << 10  # bytes: a smaller array counts as an item of a batch, a larger one as a batch
# Bytes per second: NumPy arrays are copied a hundred times as fast, lists converted at a tenth
CONVERTED = 20e6
LONG_LIST = 16 << 10  # bytes of the array: a shorter list is not worth a finding
SHORT_LIST = 256  # the same, if the source shows that the argument is a list
SHARE, MUCH = 0.05, 0.15  # shares of the run's time that converting a list takes: a note, a warning
_NUMBERS = re.compile(r"array\([\[(]")  # jnp.array([1.0, x]) is no item of a batch
# jnp.asarray(np.stack(items)) copies a whole batch
_BATCH = re.compile(r"array\(\s*(np|numpy|onp)\.(stack|array|asarray|concatenate|vstack)\(")
_COPIES = re.compile(r"array\(|device_put\(")
SCALAR = 16  # bytes of the largest number, complex128


def whole(run: Run, t: Transfer) -> str | None:
    """Return the name of the variable whose elements the line of the transfer ``t`` copies to the host one at
    a time. Return None for fewer than FEWEST such copies, or if the source does not show the variable."""
    each = t.bytes_each
    if t.direction != TO_HOST or t.source is None or t.kind in NOT_ASKED:
        return None
    if t.count is None or t.count < FEWEST or each is None or each > SCALAR:
        return None
    source = sources.of(run)
    called = (source(t.caller.file), t.caller.line) if t.caller is not None else None
    return element_reads.variable(source(t.source.file), t.source.line, t.text, called, t.kind)


def lines(run: Run) -> set[tuple[str, int]]:
    """Return (file, line number) of the lines that read the elements of an array one at a time, and of the
    lines that call functions with such lines."""
    found = [t for t in model.transfers(run) if whole(run, t) is not None]
    return {at.place for t in found for at in (t.source, t.caller) if at is not None}


def small_copies(run: Run) -> set[tuple[str, int]]:
    """Return (file, line number) of the lines that copied at least FEWEST small arrays from the host to
    devices and that rule JX604 does not report."""
    return {
        t.source.place
        for t in model.transfers(run)
        if t.source is not None and _copies_items(t) and not _inside_an_inner_loop(run, t)
    }


def _copies_items(t: Transfer) -> bool:
    """Return whether the transfer ``t`` stands for at least FEWEST copies of small arrays from the host to a
    device, by a function in COPIES."""
    if t.direction != TO_DEVICE or t.kind not in COPIES or t.count is None or t.count < FEWEST:
        return False
    return t.bytes_each is not None and t.bytes_each <= SMALL


@rule("JX603", "element-reads", WARNING)
def one_at_a_time(run: Run) -> Iterator[Finding]:
    """Yield a finding for each line that reads the elements of arrays on the host, one at a time."""
    found = ((t, whole(run, t)) for t in model.transfers(run))
    lines = grouped((t.source, (t, name)) for t, name in found if name is not None)
    for line, reads in lines.items():
        t, name = max(reads, key=lambda read: read[0].count or 0)
        names = tuple(dict.fromkeys(name for _, name in reads))
        expressions = Names(tuple(dict.fromkeys(t.text or t.kind for t, _ in reads)))
        above = model.called_at(run, t) if _is_passed(run, t) else None
        fix = _copy_whole(run, t, name)
        if above is not None:
            title = message(
                "elements-passed", expression=t.text, line=line, caller=above, name=name, n=t.count
            )
        elif len(names) > 1:
            n = sum(t.count or 0 for t, _ in reads)
            title = message("elements-of-several-read", expressions=expressions, names=Names(names), n=n)
            fix = Fix(message("fix-copy-arrays", names=", ".join(names)), "copy_once", {"names": list(names)})
        else:
            title = message("elements-read", expression=t.text, name=name, n=t.count)
        blocked = sum(t.blocked_seconds or 0.0 for t, _ in reads)
        at = {f.place for t, _ in reads for f in (t.source, t.caller) if f is not None}
        count, waits = (sum(getattr(t, what) or 0 for t, _ in reads) for what in ("count", "waits"))
        if FEW_WAITS * count > waits:  # those are for the function that computes the array
            seconds, at_most = line_times.seconds_at(run, at, (OPERATIONS,)), False
            if seconds is None:
                seconds, at_most = min(blocked, SHORT_S * count), True
        else:
            seconds, at_most = line_times.seconds_at(run, at) or blocked, False
        yield Finding(
            code="JX603",
            severity=WARNING if (t.count or 0) >= MANY else NOTE,
            certainty=LIKELY,
            title=title,
            source=line,
            evidence=[Evidence(message("waited-for-elements", seconds=Seconds(blocked)), source=line)],
            fix=fix,
            seconds=seconds,
            at_most=at_most,
        )


def _is_passed(run: Run, t: Transfer) -> bool:
    """Return whether the line of ``t`` is in a function that gets the element as an argument: the loop around
    the elements is where this function is called."""
    if t.source is None:
        return False
    text = sources.of(run)(t.source.file)
    return element_reads.variable(text, t.source.line, t.text, None, t.kind) is None


def _copy_whole(run: Run, t: Transfer, name: str) -> Fix:
    """Return the advice to copy the array whose elements the line of ``t`` reads one at a time to the host
    once. ``name``: the variable that has the elements; it may be a generator."""
    places = [(sources.of(run)(at.file), at.line, name) for at in (t.source, t.caller) if at is not None]
    generator = next(filter(None, (element_reads.generator(*place) for place in places)), None)
    if generator is not None:
        return Fix(message("fix-copy-before-generator", name=name, generator=generator), "copy_once")
    shown = any(element_reads.is_no_generator(*place) for place in places)
    words = message("fix-copy-whole", name=name) if shown else message("fix-copy-whole-if-array", name=name)
    return Fix(words, "copy_once", {"name": name})


@rule("JX604", "items-copied", NOTE)
def copied_one_at_a_time(run: Run) -> Iterator[Finding]:
    """Yield a finding for each line that copies the items of a batch to the device one at a time, or converts
    a large list."""
    lists = [*_converted_lists(run), *_lists_of_arrays(run)]
    converted = {f.source.place for f in lists if f.source is not None}
    for t in model.transfers(run):
        each = t.bytes_each
        if t.source is None or t.count is None or each is None or not _copies_items(t):
            continue
        if t.source.place in converted or _made_by_library(run, t):
            continue
        if not _inside_an_inner_loop(run, t) or _NUMBERS.search(t.text or "") or _BATCH.search(t.text or ""):
            continue
        if element_reads.list_converted(sources.of(run)(t.source.file), t.source.line) is not None:
            continue  # no item, but a list of items
        above = model.called_at(run, t)
        helper = None if above is None else message("helper-line", line=t.source, caller=above)
        text = message(
            "items-copied", expression=t.text or t.kind, helper=helper, n=t.count, each=Bytes(each)
        )
        yield Finding(
            code="JX604",
            severity=NOTE,
            certainty=LIKELY,
            **at_line(text, t.source),
            fix=Fix(message("fix-copy-batch"), "copy_once"),
            seconds=t.blocked_seconds,
        )
    yield from lists
    yield from _traced_lists(run, converted)


def _made_by_library(run: Run, t: Transfer) -> bool:
    """Return whether the line of ``t`` has no expression that copies: a library copies arrays that the line
    gives it, such as the parameters of a model."""
    return t.source is not None and t.text is None and not _COPIES.search(sources.line(run, t.source))


def _traced_lists(run: Run, known: Collection[tuple[str, int]]) -> Iterator[Finding]:
    """Yield findings about lines of functions that JAX traces and that take long because JAX converts a list
    or a tuple of numbers. ``known``: (file, line) of lines that are reported already."""
    traced: dict[tuple[str, int], list[LineTime]] = {}
    for _, t in line_times.entries(run):
        if t.traced and not any(in_a_loop(sources.of(run)(at.file), at.line) for at in t.traced):
            traced.setdefault(t.traced[0].place, []).append(t)
    for place, times in traced.items():
        seconds, at = sum(t.seconds for t in times), times[0].traced[0]
        share = line_times.share_of_run(run, seconds)
        if place in known or sum(t.samples for t in times) < line_times.FEWEST or share < SHARE:
            continue
        source = sources.of(run)(at.file)
        name = element_reads.list_converted(source, at.line)
        index = element_reads.lists_as_index(source, at.line) if name is None else ((name,), True)
        if index is None or not (index[1] or share >= MUCH):
            continue
        names, function = Names(index[0]), at.function.replace(".<locals>", "")
        took: dict[str, Field] = {"names": names, "function": function, "seconds": Seconds(seconds)}
        text = message("list-traced", **took) if index[1] else message("list-traced-maybe", **took)
        fix = message("fix-convert-index" if len(index[0]) == 1 else "fix-convert-indices", names=names)
        yield Finding(
            code="JX604",
            severity=WARNING if share >= MUCH else NOTE,
            certainty=LIKELY,
            title=text,
            source=at,
            evidence=[Evidence(text, source=at)],
            fix=Fix(fix, "numpy"),
            seconds=seconds,
            subject=("list", at.file, at.line),
            timed=True,
        )


def _converted_lists(run: Run) -> Iterator[Finding]:
    """Yield findings about lines that pass a large Python list to jnp.array or jnp.asarray: they take far
    longer than the copy of an array with as many bytes."""
    seen = set[tuple[str, int]]()
    for t in sorted(model.transfers(run), key=lambda t: -(t.bytes or 0)):
        if t.source is None or t.kind not in LISTS or not t.bytes or not t.count or not run.seconds:
            continue
        at = t.source.place
        if at in seen:
            continue  # a smaller array of the same line
        seen.add(at)
        if _BATCH.search(sources.line(run, t.source)):
            continue  # NumPy converts the list
        calls = [spent for (*place, _), spent in line_times.converting(run).items() if at == tuple(place)]
        seconds, samples = sum(s for s, _ in calls), sum(n for _, n in calls)
        share = seconds / run.seconds
        if samples < line_times.FEWEST or share < SHARE or t.bytes > CONVERTED * seconds:
            continue
        name = element_reads.list_converted(sources.of(run)(t.source.file), t.source.line)
        if t.bytes < (LONG_LIST if name is None else SHORT_LIST) * t.count:
            continue
        expression = t.text or (f"{t.kind}({name})" if name is not None else t.kind)
        text = message(
            "list-converted", expression=expression, seconds=Seconds(seconds), bytes=Bytes(t.bytes)
        )
        yield Finding(
            code="JX604",
            severity=WARNING if share >= MUCH else NOTE,
            certainty=LIKELY,
            **at_line(text, t.source),
            fix=Fix(message("fix-convert-list", name=name or "list"), "numpy"),
            seconds=seconds,
            at_most=t.bytes < LONG_LIST * t.count,  # each call has its own cost
            subject=("list", t.source.file, t.source.line),
            timed=True,
        )


def _lists_of_arrays(run: Run) -> Iterator[Finding]:
    """Yield findings about calls of jnp.array or jnp.asarray that take long although they copy nothing to
    devices: JAX then converts a list of JAX arrays."""
    copied = {(t.source.place, t.text) for t in model.transfers(run) if t.source is not None}
    for (file, line, column), (seconds, samples) in line_times.converting(run).items():
        share = line_times.share_of_run(run, seconds)
        if not copied or samples < line_times.FEWEST or share < SHARE:
            continue
        call = element_reads.list_in_call(sources.of(run)(file), line, column)
        if call is None or not {((file, line), call.text), ((file, line), None)}.isdisjoint(copied):
            continue
        text = message("arrays-converted", expression=call.text, seconds=Seconds(seconds))
        yield Finding(
            code="JX604",
            severity=WARNING if share >= MUCH else NOTE,
            certainty=LIKELY,
            **at_line(text, Frame(file, line, "")),
            fix=Fix(message("fix-stack-arrays", list=call.list), "stack"),
            seconds=seconds,
            at_most=True,
            subject=("list", file, line),
            timed=True,
        )


def _inside_an_inner_loop(run: Run, t: Transfer) -> bool:
    """Return whether the innermost loop around the line of ``t`` calls no jitted function of the user. Such a
    loop may collect the items of a batch. If no loop is around the line, take the line that calls its
    function. False if there is no loop."""
    calls = payers.call_lines(run)
    for at in (t.source, t.caller):
        text = sources.of(run)(at.file) if at is not None else None
        loop = loop_around(text, at.line, comprehensions=True) if at is not None else None
        if at is not None and loop is not None:
            return not any(file == at.file and loop[0] <= line <= loop[1] for file, line in calls)
    return False
