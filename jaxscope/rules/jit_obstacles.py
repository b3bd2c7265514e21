"""Extend the advice to jit functions by what must change in their code: a jitted function cannot read the
value of an array, and cannot compute an array whose size depends on values."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from jaxscope.analysis import host_calls, line_names, loop_calls, masks, numpy_draws, sizes_under_jit
from jaxscope.analysis.host_calls import HostCall
from jaxscope.analysis.key_reuse import called_in
from jaxscope.analysis.source_lines import ends_the_loop, loop_around, only_passed_to, only_raises
from jaxscope.analysis.syntax import begins_at, spans
from jaxscope.model import payers, sources, transfers
from jaxscope.model.run import Run
from jaxscope.model.transfers import Transfer
from jaxscope.schema.findings import Fix, extended, slugs_of
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Message, Names, message

_CONDITION = re.compile(r"\b(?:if|elif|while|assert|and|or|not)\b|\bbool\(")
_CONVERTED = re.compile(r"(?:return |\w+ = )?bool\(.*")  # a value that the line converts, and does not test
# Functions of Python that compare values
_COMPARES = re.compile(r"\b(?:sorted|min|max)\(")
_STATEMENT = re.compile(r"(?:if|elif|while|assert)\s+(?P<condition>.+?)(?::(?:\s+\w.*)?|,\s*f?[\"'].*)?")
# Templates of the advice to jit an iteration of a loop
ITERATION = frozenset({"fix-jit-step", "fix-jit-iteration"})
CALLS = 6  # calls of NumPy and SciPy that are named
READS = 3  # lines that read values, of those named in one piece of advice
Functions = Collection[tuple[str, str]]  # (file, qualified name) of each


def with_obstacles(
    run: Run,
    fix: Fix,
    reading: Functions,
    indexing: Functions,
    loop: tuple[str, int, int] | None = None,
    line: Frame | None = None,
    moved: Collection[tuple[str, int]] | None = None,
) -> Fix:
    """Return ``fix``, extended by the obstacles found: what has to be changed before jit can trace the code.
    At most READS (3) values that Python reads are named, and one obstacle of each other kind.

    Args:
      fix: the advice; advice other than to jit is returned unchanged.
      reading: functions that may read the value of an array.
      indexing: functions that may index with a condition, or compute an array whose size depends on values.
      loop: (file, first line, last line) of a loop whose iterations are to be jitted; None: there is none.
      line: a line whose computation is to be jitted; None: there is none.
      moved: the lines, (file, number), that are to be moved into a jitted function; calls of NumPy on other
        lines stay outside. None: whole functions are to be jitted.
    """
    if fix.kind != "jit":
        return fix
    outside: list[Message] = []  # what can stay outside of the jitted function
    for read in _reads(run, reading, loop, iteration=not ITERATION.isdisjoint(slugs_of(fix)))[:READS]:
        changed = _without_reading(run, fix, read, loop)
        fix = changed if isinstance(changed, Fix) else fix
        outside += [changed] if isinstance(changed, Message) else []
    if outside:
        fix = extended(fix, "fix-returns-value", reads=Names(tuple(outside)))
    masked = _first(run, indexing, masks.index_with_mask)
    if masked is not None:
        fix = extended(fix, "fix-mask-index", line=masked[0], condition=masked[1])
    lines = loop or ((line.file, line.line, line.line) if line is not None else None)
    sized = _sized(run, indexing, lines)
    if sized is not None:
        at, expression, option = sized
        options = f"{option}=N" if option == "length" else f"{option}=N, fill_value=-1"
        padding = message("minus-one-is-padding") if option != "length" else None
        fix = extended(
            fix, "fix-size-by-values", line=at, expression=expression, options=options, padding=padding
        )
    item = _first(run, indexing, sizes_under_jit.item_as_size)
    if item is not None:
        fix = extended(fix, "fix-item-as-size", line=item[0], item=item[1])
    sliced = _sliced(run, reading, loop)
    if sliced is not None:
        at, expression, new = sliced
        fix = extended(fix, "fix-dynamic-slice", line=at, expression=expression, new=new)
    jitted = [f for f in reading if not _around(run, f, loop)]
    fix = _with_draws_outside(run, fix, jitted, loop)
    return _with_containers(run, _with_host_calls(run, fix, jitted, loop, moved), jitted)


def _with_draws_outside(run: Run, fix: Fix, functions: Functions, loop: tuple[str, int, int] | None) -> Fix:
    """Return ``fix``, extended by the first line on which ``loop`` or ``functions`` draw random numbers with
    NumPy or Python."""
    if loop is not None:
        file, first, last = loop
        here = numpy_draws.on_lines(sources.of(run)(file), first, last)
        if here is not None:
            return extended(fix, "fix-draw-outside", line=Frame(file, here[0], ""), called=here[1])
    for file, name in functions:
        source = sources.of(run)(file)
        defined = line_names.function(source, name)
        drawn = numpy_draws.find(source, defined.name, begins_at(defined)) if defined is not None else None
        if drawn is not None:
            line = Frame(file, drawn.line, drawn.function)
            return extended(fix, "fix-draw-outside", line=line, called=drawn.call)
    return fix


def _with_host_calls(
    run: Run,
    fix: Fix,
    functions: Functions,
    loop: tuple[str, int, int] | None,
    moved: Collection[tuple[str, int]] | None,
) -> Fix:
    """Return ``fix``, extended by the calls of NumPy and SciPy that get arrays on the lines of ``loop``, in
    ``functions``, or in functions of their files that these call. If ``moved`` is not None, only calls on its
    lines count."""
    text, calls = sources.of(run), dict[str, tuple[Frame, HostCall]]()
    if loop is not None:
        for call in host_calls.on_lines(text(loop[0]), *loop[1:]):
            calls.setdefault(call.called, (Frame(loop[0], call.line, ""), call))
    for file, name in functions:
        inside = called_in(text(file), {name.rpartition(".")[2]}, surely=True)
        for each in dict.fromkeys((name, *sorted(inside))):
            for call in host_calls.find(text(file), each):
                calls.setdefault(call.called, (Frame(file, call.line, each), call))
    if moved is not None:
        calls = {called: at for called, at in calls.items() if at[0].place in moved}
    if not calls:
        return fix
    of_numpy = [each for each in calls.values() if each[1].instead.startswith("jax.numpy.")]
    of_scipy = [each for each in calls.values() if each not in of_numpy]
    numpy = [message("call-at", called=call.called, line=line) for line, call in of_numpy]
    scipy = [
        message("instead-of-call", instead=call.instead, called=call.called, line=line)
        for line, call in of_scipy
    ]
    what = [message("with-jax-numpy", calls=Names(tuple(numpy), CALLS))] if numpy else []
    what += [message("with-jax-scipy", calls=Names(tuple(scipy), CALLS))] if scipy else []
    return extended(fix, "fix-not-on-host", what=Names(tuple(what)))


def _with_containers(run: Run, fix: Fix, functions: Functions) -> Fix:
    """Return ``fix``, extended by the containers that ``functions`` change and did not make."""
    changed = dict[str, None]()
    for file, name in functions:
        changed |= dict.fromkeys(line_names.containers_changed(sources.of(run)(file), name))
    return extended(fix, "fix-change-outside", names=Names(tuple(changed), READS)) if changed else fix


def _around(run: Run, function: tuple[str, str], loop: tuple[str, int, int] | None) -> bool:
    """Return whether ``function``, (file, qualified name), contains ``loop``: it is not jitted then."""
    defined = line_names.function(sources.of(run)(function[0]), function[1])
    return loop is not None and function[0] == loop[0] and defined is not None and spans(defined, loop[1])


def around_simulator(run: Run, loop: tuple[str, int, int]) -> Fix | None:
    """Return the advice to jit the parts of an iteration of ``loop`` (file, first line, last line) before and
    after a line that reads a value for Python code, such as a simulator, on whose result the next iteration
    depends. None if there is no such line."""
    source = sources.of(run)(loop[0])
    counts: dict[tuple[Frame, str], int] = {}
    for t in transfers.transfers(run):
        at = t.source
        asked = t.direction == transfers.TO_HOST and t.kind not in transfers.NOT_ASKED
        if asked and at is not None and _within(at, loop):
            counts[at, t.text or f"{t.kind}()"] = t.count or 0
    for at, text in sorted(counts, key=lambda read: -counts[read]):
        method = loop_calls.given_to_object(source, at.line)
        if method is not None and loop_calls.reaches_next_iteration(source, at.line) is not None:
            words = message("fix-jit-around-read", method=method, expression=text, line=at)
            return Fix(words, "jit")
    return None


def _without_reading(run: Run, fix: Fix, read: Transfer, loop: tuple[str, int, int] | None) -> Fix | Message:
    """Return ``fix`` with what to write instead of ``read``, a value that Python needs. If Python can read it
    outside of the jitted function, return the expression and its line. ``loop`` as in ``with_obstacles``."""
    at = read.source
    text = sources.line(run, at) if at is not None else ""
    expression = _condition(read.text or text)  # the line may have several such expressions
    indexed = sizes_under_jit.list_indexed(read.text) if read.kind == "int" else None
    if indexed is not None:
        return extended(fix, "fix-index-of-list", line=at, expression=expression, list=indexed)
    source = sources.of(run)(at.file) if at is not None else None
    size = sizes_under_jit.size_from_value(source, at.line) if at is not None else None
    if size is not None:
        return extended(fix, "fix-size-from-value", line=at, name=size)
    raises = at is not None and only_raises(source, at.line)
    if raises or text.lstrip().startswith("assert "):
        return extended(fix, "fix-check-outside", line=at, expression=expression)
    jitted = {line for file, line in payers.call_lines(run) if at is not None and file == at.file}
    called = only_passed_to(source, at.line, jitted) if at is not None else None
    if called is not None and payers.takes_numbers(run, called):
        return extended(fix, "fix-without-conversion", line=at, kind=read.kind)
    if _CONVERTED.fullmatch(text.strip()):
        return message("read-by-bool", line=at)
    if _CONDITION.search(text) is None or _ends(run, at, loop):
        if read.text is None and text.startswith("print("):
            return message("read-by-print", line=at)
        if read.kind in ("int", "float") and expression.startswith(f"{read.kind}("):
            return message("read-by-conversion", kind=read.kind, line=at)
        quoted = f"'{expression}'" if " " in expression else expression
        return message("read-at-line-of", expression=quoted, line=at)
    around = loop_around(source, at.line) if at is not None and ends_the_loop(source, at.line) else None
    if at is not None and around is not None:
        ends = message("ends-when", expression=expression)
        if text.lstrip().startswith("while "):
            ends = message("runs-while", expression=expression)
        begin = Frame(at.file, around[0], at.function)
        return extended(fix, "fix-loop-until-value", loop=begin, ends=ends)
    return extended(fix, "fix-reads-value", line=at, expression=expression)


def _condition(line: str) -> str:
    """Return the condition on a ``line`` of source: ``x > 0`` for ``if x > 0: break``. Return the line itself
    if it has none."""
    found = _STATEMENT.fullmatch(line.strip().removesuffix(": ..."))
    return found["condition"] if found is not None else line.strip().removesuffix(": ...").rstrip(":")


def _ends(run: Run, at: Frame | None, loop: tuple[str, int, int] | None) -> bool:
    """Return whether the line ``at`` decides whether ``loop`` (as in ``with_obstacles``) ends, so that its
    condition can stay outside of a function that computes one iteration."""
    return at is not None and _within(at, loop) and ends_the_loop(sources.of(run)(at.file), at.line)


def _within(at: Frame, loop: tuple[str, int, int] | None) -> bool:
    """Return whether the line ``at`` is in ``loop`` (as in ``with_obstacles``)."""
    return loop is not None and at.file == loop[0] and loop[1] <= at.line <= loop[2]


def _reads(
    run: Run, functions: Functions, loop: tuple[str, int, int] | None, *, iteration: bool = False
) -> list[Transfer]:
    """Return the copies to the host that ``functions``, and functions of their files that they call, make
    because Python needs the value (``if x > 0``, ``float(x)``), and those that the lines of ``loop`` make for
    a condition, one of each line. If ``iteration`` is True, an iteration of the loop is to be jitted, and
    also return other values that its lines read."""
    found: dict[tuple[str, int], Transfer] = {}
    inside = {
        (file, name)
        for file, function in functions
        for name in called_in(sources.of(run)(file), {function.rpartition(".")[2]}, surely=True)
    }
    for t in transfers.transfers(run):
        at = t.source
        if t.direction != transfers.TO_HOST or at is None:
            continue
        of_function = not inside.isdisjoint((at.file, name) for name in at.function.split("."))
        of_loop = _within(at, loop)
        if of_function or (of_loop and (iteration or t.kind == "bool")):
            text = sources.line(run, at)
            called = (at.file, at.function) in functions or t.kind == "bool" or f"{t.kind}(" in text
            if text and called and _needs_the_value(t.kind, text):
                found.setdefault(at.place, t)
    return list(found.values())


def _needs_the_value(kind: str, line: str) -> bool:
    """Return whether ``line``, a line of source, needs the value of the array that it copied to the host.
    ``kind`` is the kind of the copy (``bool``, ``float``, ...)."""
    if kind == "bool":
        return (_CONDITION.search(line) or _COMPARES.search(line)) is not None
    # A library may only check the value, and skips the check under jit.
    called = kind in ("float", "int", "item") and f"{kind}(" in line
    return called or (kind == "int" and "[" in line)  # data[i]


def reads_in_loops(run: Run, file: str, function: str) -> bool:
    """Return whether a loop in ``function`` of ``file`` reads the value of an array, other than to test a
    condition: the function then goes on with a number of Python, and jit cannot trace it as a whole."""
    source = sources.of(run)(file)
    defined = line_names.function(source, function)
    for read in _reads(run, {(file, function)}, None):
        loop = loop_around(source, read.source.line) if read.source is not None else None
        if read.kind != "bool" and loop is not None and defined is not None and loop[0] > defined.lineno:
            return True
    return False


def _first(
    run: Run, functions: Functions, find: Callable[[str | None, str], tuple[int, str] | None]
) -> tuple[Frame, str] | None:
    """Return (line, expression on this line) for the first of ``functions`` in whose source ``find`` finds an
    expression; None if it finds none."""
    for file, function in functions:
        found = find(sources.of(run)(file), function)
        if found is not None:
            return Frame(file, found[0], function), found[1]
    return None


def _sized(
    run: Run, functions: Functions, loop: tuple[str, int, int] | None
) -> tuple[Frame, str, str] | None:
    """Return the first call in ``functions`` or on the lines of ``loop`` whose result has a size that depends
    on values, as (its line, its source, the option that would fix the size). None if there is none."""
    text = sources.of(run)
    places = [(loop[0], "", *loop[1:])] if loop is not None else []
    for file, name in functions:
        defined = line_names.function(text(file), name)
        if defined is not None:
            places.append((file, name, defined.lineno, defined.end_lineno or 0))
    for file, name, first, last in places:
        found = sizes_under_jit.by_values(text(file), first, last)
        if found is not None:
            return Frame(file, found[0], name), *found[1:]
    return None


def _sliced(
    run: Run, functions: Functions, loop: tuple[str, int, int] | None
) -> tuple[Frame, str, str] | None:
    """Return a slice that read its bounds from the device, in one of ``functions`` or on the lines of
    ``loop``, as (its line, its source, what to write in a jitted function); None if there is none."""
    for t in transfers.transfers(run):
        at, new = t.source, sizes_under_jit.dynamic_slice(t.text) if t.kind == "int" else None
        if at is None or new is None or t.text is None:
            continue
        if _within(at, loop) or (at.file, at.function.partition(".<locals>.<")[0]) in functions:
            return at, t.text, new
    return None
