"""Merge findings that have one cause, and so one fix: an odd batch that recompiles every function and eager
operation that it passes through, or a loop whose operations outside jit are compiled and take time."""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence

import msgspec

from jaxscope.analysis import line_names, loop_calls
from jaxscope.analysis.array_names import holds_array
from jaxscope.analysis.avals import short_aval
from jaxscope.analysis.causes import SHAPES
from jaxscope.analysis.loop_calls import call_at
from jaxscope.analysis.sharding_audit import RESULT
from jaxscope.analysis.syntax import last_name, spans
from jaxscope.model import causes, line_times, sources
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.rules import computing_operations, iterated_arrays, jit_obstacles, resized_operations
from jaxscope.rules.finding_parts import line_numbers
from jaxscope.schema.causes import NO_EQ, ArrayType, Cause, Commitment, StaticDetail
from jaxscope.schema.findings import WARNING, Evidence, Finding, Fix, extended, fix_of, merged, slug_of
from jaxscope.schema.keys import Frame, Key, same_line
from jaxscope.schema.line_times import OPERATIONS, LineTime
from jaxscope.schema.messages import Count, Field, Message, Names, Seconds, Words, message

LINES = 4  # lines with eager operations that are named one by one
MORE = 4  # times as long: what takes a fourth of it needs no advice of its own
NAMES = 3  # functions that are named, or operations of one line
# Advice to jit code that JAX compiles again for each size of the arrays
SIZED = frozenset({"fix-one-size-first", "fix-one-program-each-size"})
# Rules about arrays that are not split as they could be, from which repeated work may follow
NOT_SPLIT = frozenset({"JX401", "JX502", "JX503", "JX509", "JX512"})
FEW_ITERATIONS = 4  # of a Python loop that may stay one inside jit
MORE_LOOPS = 3  # Python loops that are named in advice beside the most important one
# Rules about operations outside jit. All operations are outside jit while jit is disabled.
OUTSIDE_JIT = frozenset({"JX133", "JX605", "JX607"})
# Rules about the time of operations or copies
TIMED = frozenset({"JX602", "JX603", "JX604", "JX605", "JX607"})
PART_TO_RUN = 0.3  # running the operations takes at least this part of the seconds that compiling them took
WIDE = frozenset({"float64", "complex128", "int64", "uint64"})


class Miss(msgspec.Struct, frozen=True):
    """A call that recompiled.

    Attributes:
      compilation: the call.
      step: the training step; None: unknown, or not needed.
      cause: the difference from an earlier call that made the cache miss.
    """

    compilation: Compilation
    step: int | None
    cause: Cause


class Change(msgspec.Struct, frozen=True):
    """Recompiles that one change of the size of an array explains.

    Attributes:
      group: the recompiles of the function that is named first: a function of the user, if there is one.
      others: the recompiles of other functions and of operations outside jit, one list for each function and
        cause.
    """

    group: list[Miss]
    others: list[list[Miss]]

    @property
    def every(self) -> list[Miss]:
        return [m for g in (self.group, *self.others) for m in g]

    @property
    def seconds(self) -> float:
        return sum(m.compilation.seconds for m in self.every)

    @property
    def eager(self) -> bool:
        """Return whether an operation outside jit recompiled because of the change."""
        return any(m.compilation.function.operation for m in self.every)


def together(run: Run, groups: Sequence[list[Miss]]) -> list[Change]:
    """Merge those of ``groups`` that the same change of size explains, such as an odd batch. Each group has
    the recompiles of one function for one cause. Return a ``Change`` for each merged group and for each other
    group, the most seconds first.

    A group is merged with others if each of its recompiles has a change of size (64 became 29) that a
    recompile of the others has, too, in the same process and at most one step apart."""
    spent = [sum(m.compilation.seconds for m in group) for group in groups]
    order = sorted(range(len(groups)), key=lambda i: (groups[i][0].compilation.function.operation, -spent[i]))
    functions = {m.compilation.function.id: m.compilation.function for g in groups for m in g}
    lines = _on_their_lines(f for f in functions.values() if f.operation)
    resized = {i: [_places(run, m, lines) for m in groups[i]] for i in order if _of_a_size(groups[i])}
    taken: set[int] = set()
    found: list[tuple[int, Change]] = []
    for first in order:
        if first in taken:
            continue
        taken.add(first)
        members: list[int] = []
        if first in resized:
            met = {place for places in resized[first] for place in places}
            grown = bool(met)
            while grown:
                grown = False
                for i in order:
                    if i not in taken and i in resized and all(_near(places, met) for places in resized[i]):
                        met.update(place for places in resized[i] for place in places)
                        taken.add(i)
                        members.append(i)
                        grown = True
        found.append((first, Change(groups[first], [groups[i] for i in members])))
    return [change for _, change in sorted(found, key=lambda pair: -pair[1].seconds)]


def _of_a_size(group: Sequence[Miss]) -> bool:
    """Return whether a change of size can explain the recompiles of ``group``, which are of one function: all
    causes are changes of shape, or for an operation outside jit, none is a first call."""
    if group[0].compilation.function.operation:
        return all(m.cause.kind != "first" for m in group)
    return all(m.cause.kind in SHAPES for m in group)


def _places(run: Run, miss: Miss, lines: Mapping[str, Compilation]) -> set[tuple[Hashable, int | None]]:
    """Return the changes of size that made the call ``miss`` recompile, as a set of ((process id, size
    before, size now), step). ``lines`` is only for operations outside jit: id of a call -> the earlier call
    to compare it with."""
    pairs = _sizes(run, miss.compilation, lines.get(miss.compilation.id))
    return {((miss.compilation.process.id, *pair), miss.step) for pair in pairs}


def _near(places: set[tuple[Hashable, int | None]], met: set[tuple[Hashable, int | None]]) -> bool:
    """Return whether a change in ``places`` is also in ``met``, at most one step apart."""
    return any(
        (what, at) in met
        for what, step in places
        for at in ((None,) if step is None else (step, step - 1, step + 1))
    )


def _sizes(run: Run, c: Compilation, before: Compilation | None) -> set[tuple[int, int]]:
    """Return (size before, size now) for each dimension of an argument or a result of the call ``c`` that
    changed since ``before``, an earlier call. If ``before`` is None, compare with the earlier call whose
    cache key is nearest."""
    before = before or causes.compared_with(run, c)
    if before is None or c.key is None or before.key is None:
        return set()
    was = {leaf.path: leaf.shape for leaf in before.key.arguments}
    beside = [(was.get(leaf.path), leaf.shape) for leaf in c.key.arguments]
    if c.traced is not None and before.traced is not None:
        beside += [
            (a.shape, b.shape) for a, b in zip(before.traced.out or (), c.traced.out or (), strict=False)
        ]
    return {
        (m, n)
        for old, new in beside
        if old is not None and new is not None and len(old) == len(new)
        for m, n in zip(old, new, strict=True)
        if isinstance(m, int) and isinstance(n, int) and m != n
    }


def _on_their_lines(functions: Iterable[Function]) -> dict[str, Compilation]:
    """Return {id of a call: the earlier call to compare it with} for the calls of ``functions``, operations
    outside jit. The earlier call is the latest one of the same operation on the same line, in the same
    process, and with arguments of the same ranks."""
    before: dict[str, Compilation] = {}
    for f in functions:
        latest: dict[Hashable, Compilation] = {}
        for c in f.compilations:
            if c.site is not None and c.key is not None:
                place = (c.process.id, c.site.file, c.site.line, _ranks(c.key))
                if place in latest:
                    before[c.id] = latest[place]
                latest[place] = c
    return before


def _ranks(key: Key) -> tuple[int | None, ...]:
    return tuple(None if leaf.shape is None else len(leaf.shape) for leaf in key.arguments)


def also(change: Change) -> Message | None:
    """Return a clause about the other functions that recompiled because of ``change``:
    ``; the same change recompiled stage and 7 eager operations``. None if there are no others."""
    if not change.others:
        return None
    names = list(dict.fromkeys(_name(g[0]) for g in change.others if not g[0].compilation.function.operation))
    listed: list[str | Message] = [*names[:NAMES]]
    if len(names) > NAMES:
        listed.append(message("more-functions", n=len(names) - NAMES))
    n = sum(g[0].compilation.function.operation for g in change.others)
    if n:
        listed.append(message("an-eager-operation") if n == 1 else message("eager-operations", n=n))
    return message("also-recompiled", names=Names(tuple(listed)))


def evidence(run: Run, change: Change) -> list[tuple[int, Evidence]]:
    """Return (time of a recompile in nanoseconds, evidence about it) for the other functions that recompiled
    because of ``change``: one entry for each jitted function and cause, and one for each line with operations
    outside jit. If there are more than LINES such lines, the other lines have one entry together."""
    found: list[tuple[int, Evidence]] = []
    lines: dict[tuple[str, int], list[Miss]] = {}
    for group in change.others:
        last = group[-1]
        c = last.compilation
        if c.function.operation and c.site is not None:
            lines.setdefault(c.site.place, []).extend(group)
            continue
        text = message(
            "resized-function",
            call=f"{_name(last)}#{run.number(c)}",
            cause=last.cause,
            times=message("times-in-all", n=len(group)) if len(group) > 1 else None,
        )
        found.append((c.t_ns, _evidence(text, last)))
    for n, ((file, line), misses) in enumerate(sorted(lines.items(), key=lambda item: _when(item[1]))):
        if n == LINES:
            more = Count(len(lines) - LINES, "other line")
            found.append((_when(misses), _evidence(message("resized-elsewhere", lines=more), misses[-1])))
            break
        names = list(dict.fromkeys(_name(m) for m in sorted(misses, key=lambda m: m.compilation.t_ns)))
        at: dict[str, Field] = {"line": Frame(file, line, ""), "at": at_steps(misses)}
        if len(names) == 1:
            operations = message("resized-operation", name=names[0], **at)
        else:
            operations = message("resized-operations", names=Names(tuple(names), NAMES), **at)
        found.append((_when(misses), _evidence(operations, misses[-1])))
    return found


def _evidence(text: Words, miss: Miss) -> Evidence:
    c = miss.compilation
    return Evidence(text, compilation=c.id, program=c.program, source=c.site, step=miss.step)


def _when(misses: Sequence[Miss]) -> int:
    return min(m.compilation.t_ns for m in misses)


def at_steps(misses: Sequence[Miss]) -> Message | None:
    """Return a clause with the training steps of the recompiles ``misses``: `` at step 3`` or `` at steps 3
    to 9``; None if the steps are unknown."""
    steps = sorted({m.step for m in misses if m.step is not None})
    if not steps:
        return None
    if len(steps) == 1:
        return message("at-step", step=steps[0])
    return message("at-steps", first=steps[0], last=steps[-1])


def _name(miss: Miss) -> str:
    return miss.compilation.function.display_name


def with_what_follows(run: Run, findings: Iterable[Finding]) -> list[Finding]:
    """Return ``findings`` without those that follow from another finding and need no fix of their own. They
    are merged into the other finding, or left out."""
    kept = list(findings)
    # JX515 without a known cause follows from a rule about an array that is not split, JX401 from JX515.
    not_split = {f.function for f in kept if f.code in NOT_SPLIT}
    kept = [f for f in kept if f.code != "JX515" or f.subject or not_split.isdisjoint((f.function, None))]
    repeated = {(f.function, e.source) for f in kept if f.code == "JX515" for e in f.evidence}
    kept = [f for f in kept if f.code != "JX401" or (f.function, f.source) not in repeated]
    if any(f.code == "JX609" and f.subject == ("jax_disable_jit",) for f in kept):
        kept = [f for f in kept if f.code not in OUTSIDE_JIT]
    kept = _with_unrolled_loop(run, kept)
    kept = _with_what_was_passed_on(run, _without_what_jit_takes_in(run, kept))
    kept = _of_one_definition(_of_one_class(run, kept))
    before = _on_their_lines(f for f in run.functions.values() if f.operation)
    kept = resized_operations.merged(run, kept, lambda c: _sizes(run, c, before.get(c.id)))
    kept = _with_functions_below(run, _with_time_to_run(run, iterated_arrays.with_time(run, kept)))
    # The function was passed a result that is not sharded as requested.
    for refused in [f for f in kept if f.code == "JX503"]:
        following = [f for f in kept if f.code == "JX115" and _follows(run, f, refused)]
        if not following:
            continue
        recompiled = _recompile(following[0])
        kept = merged(
            kept,
            refused,
            following,
            severity=WARNING,
            title=message("refused-and-recompiled", finding=_named(refused, following[0].path), **recompiled),
            fix=extended(refused.fix, "fix-also-ends-recompile", function=recompiled["function"]),
        )
    return kept


def with_inner_loops(run: Run, fix: Fix, inner: Sequence[Frame]) -> Fix:
    """Return the advice ``fix`` to jit the body of a loop, extended by advice about ``inner``, Python loops
    inside that body, which tracing would unroll. Return ``fix`` alone if there are none, or only loops of a
    few iterations."""
    inner = [line for line in inner if not _has_few_iterations(run, line)]
    if not inner:
        return fix
    first, *rest = inner
    in_order = _runs_in_order(run, first)
    same = [line for line in rest if _runs_in_order(run, line) == in_order]
    others = [line for line in rest if line not in same]
    words = message(
        "fix-inner-loop",
        fix=fix.words,
        loop=first,
        instead=message("fix-loop-by-scan") if in_order else _by_vmap(run, first),
        same=message("same-for-loops", loops=Names(tuple(same), MORE_LOOPS)) if same else None,
        others=message(
            "other-loops",
            loops=Names(tuple(others), MORE_LOOPS),
            instead=message("by-vmap" if in_order else "by-scan"),
        )
        if others
        else None,
    )
    arguments = {**fix.arguments, "inner": [first.file, first.line, first.function]}
    return Fix(words, fix.kind, arguments)


def with_vmap(run: Run, fix: Fix, loop: Frame) -> Fix:
    """Return the advice ``fix`` to jit the body of ``loop``, extended by ``jax.vmap`` if each iteration only
    replaces its own items of lists, as in a loop over the members of an ensemble."""
    names = loop_calls.items_of_iterations(loop_calls.loop_from(sources.of(run)(loop.file), loop.line))
    if not names:
        return fix
    return extended(fix, "fix-or-vmap-over-items", loop=loop, names=Names(names), first=names[0])


def _has_few_iterations(run: Run, line: Frame) -> bool:
    """Return whether the loop that begins on ``line`` goes through ``range(n)``, where ``n`` is a number of
    at most FEW_ITERATIONS."""
    loop = loop_calls.loop_from(sources.of(run)(line.file), line.line)
    match loop:
        case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int(n))])):
            return n <= FEW_ITERATIONS
    return False


def _by_vmap(run: Run, line: Frame) -> Message:
    """Return the advice to replace the loop that begins on ``line`` by ``jax.vmap``."""
    text = sources.of(run)(line.file)
    loop = loop_calls.loop_from(text, line.line)
    over = loop.iter if isinstance(loop, ast.For) else None
    counts = isinstance(over, ast.Call) and last_name(over.func) == "range"
    known = counts or (isinstance(over, ast.Name) and holds_array(text, line.line, over.id))
    return message("fix-loop-by-vmap", listed=None if known else message("loop-over-a-list"))


def _runs_in_order(run: Run, line: Frame) -> bool:
    """Return whether the iterations of the loop that begins on ``line`` need results of each other."""
    loop = loop_calls.loop_from(sources.of(run)(line.file), line.line)
    return isinstance(loop, ast.While) or (isinstance(loop, ast.For) and loop_calls.carries(loop))


def _of_both(run: Run, fix: Fix, compiled: Finding, running: Finding) -> Fix:
    """Return the advice for two merged findings: ``compiled``, with the advice ``fix`` to jit operations, and
    ``running``, about the time of the loop that runs them. It is the advice of ``running`` if that is to jit
    a function and ``fix`` is not to jit the step; else ``fix``, extended by an inner loop."""
    other = fix_of(running)
    if other is not None and "function" in other.arguments and slug_of(compiled) != "fix-jit-step":
        return other  # nearly all operations of the loop are in this function, not only those of one line
    if other is not None and slug_of(running) == "fix-jit-call-at":
        return other  # it names the line that calls the function
    of_one_line = slug_of(compiled) in ("fix-jit-around", "fix-jit-around-call")
    more = _lines(running) - _lines(compiled)
    if other is not None and other.kind == "jit" and of_one_line and more:
        return other
    if of_one_line and more and isinstance(fix.words, Message) and len({file for file, _ in more}) == 1:
        numbers = line_numbers(n for _, n in _lines(running))
        fields = fix.words.fields | {"lines": message("lines-in", numbers=numbers)}
        fix = msgspec.structs.replace(fix, words=msgspec.structs.replace(fix.words, fields=fields))
    inner = other.arguments.get("inner") if other is not None else None
    loop = Frame(*inner) if inner else None
    timed = _timed_loop(running)
    if loop is None and slug_of(compiled) == "fix-jit-step" and timed is not None:
        file, line = timed
        around, begin = loop_calls.loop_from(sources.of(run)(file), line), _begin(compiled)
        outside = around is not None and begin is not None and begin[0] == file and line < begin[1]
        if not outside or around is None or begin is None or not spans(around, begin[1]):
            loop = Frame(file, line, "")  # a loop inside the iteration that is to be jitted
    return with_inner_loops(run, fix, [loop] if loop is not None and loop.place != compiled.subject else [])


def _timed_loop(f: Finding) -> tuple[str, int] | None:
    """Return (file, first line) of the loop that the finding ``f`` of JX605 is about; None if it is about
    none."""
    match f.subject:
        case ("JX605", str(file), int(line)):
            return file, line
    return None


def _begin(f: Finding) -> tuple[str, int] | None:
    """Return (file, line) of the loop that the finding ``f`` of JX133 is about; None if it is about none."""
    match f.subject:
        case (str(file), int(line), *_):
            return file, line
    return None


def _with_time_to_run(run: Run, findings: list[Finding]) -> list[Finding]:
    """Return ``_with_time_of_line(run, findings)``, but merge a finding about the compilations of operations
    outside jit (JX133) with a finding about the time of a loop that runs these operations (JX605), if jit
    solves both, or if the loop takes at least MORE times as long as the compilations. Findings about the
    creation of parameters are not merged. At the end, apply ``_with_operations``."""
    kept = _with_time_of_line(run, findings)
    for running in [f for f in kept if f.code == "JX605"]:
        lines = _lines(running)
        compiled = [f for f in kept if f.code == "JX133" and f.seconds and lines & _lines(f)]
        compiled = [f for f in compiled if f.source is not None and f.source.place in lines] or compiled
        if compiled and _passes_a_function(running):
            largest = max(compiled, key=lambda f: f.seconds or 0.0)
            if (largest.seconds or 0.0) > (running.seconds or 0.0):
                more = Seconds(running.seconds or 0.0)
                title = message("with-running", finding=largest.title, seconds=more)
                kept = merged(kept, largest, [running], titles=True, title=title, fix=largest.fix)
            else:
                kept = _with_all_compilations(kept, running, compiled)
            continue
        if len(together := [f for f in compiled if _in_loop_of(run, f, running)]) > 1:
            kept = _with_all_compilations(kept, running, together)
            continue
        for f in compiled:
            fix = fix_of(f)
            short = MORE * (f.seconds or 0.0) <= (running.seconds or 0.0)
            if fix is None or _creates(f) or (fix.kind != "jit" and not short):
                continue
            if _is_of_another_loop(run, f, running):
                continue
            one_jit = fix.kind == "jit" and slug_of(running) != "fix-jit-each" and _runs(run, f, running)
            instead = fix_of(running)
            if not one_jit and instead is not None and "fix-jit-output" in jit_obstacles.slugs(instead):
                continue  # the lines of ``f`` run in each iteration
            first, second = sorted((f, running), key=lambda one: -(one.seconds or 0.0))
            both = _of_both(run, fix, f, running) if one_jit else instead
            if both is not None and not SIZED.isdisjoint(jit_obstacles.slugs(fix)):
                sized = not SIZED.isdisjoint(jit_obstacles.slugs(both))
                both = both if sized else extended(both, "fix-one-program-each-size")
            more = Seconds(second.seconds or 0.0)
            title = message("with-compiling", finding=first.title, seconds=more)
            if first is f:
                title = message("with-running", finding=first.title, seconds=more)
            kept = merged(
                kept,
                first,
                [second],
                titles=True,
                title=title,
                severity=WARNING if WARNING in (f.severity, running.severity) else first.severity,
                fix=both,
                at_most=f.at_most,
            )
            break
    return _with_operations(run, _of_one_function(kept))


def _is_of_another_loop(run: Run, compiled: Finding, running: Finding) -> bool:
    """Return whether the advice of ``compiled`` (JX133) is to jit the iterations of a loop that is neither
    inside nor around the loop of ``running`` (JX605). Both loops may call the same function."""
    begin = _begin(compiled)
    slugs = jit_obstacles.slugs(fix) if (fix := fix_of(compiled)) is not None else ()
    other = _timed_loop(running)
    if "fix-jit-step" not in slugs or begin is None or other is None:
        return False
    first, second = (loop_calls.loop_from(sources.of(run)(file), line) for file, line in (begin, other))
    if begin[0] != other[0] or first is None or second is None:
        return False
    return not spans(first, second.lineno) and not spans(second, first.lineno)


def _of_one_function(findings: list[Finding]) -> list[Finding]:
    """Return ``findings``, but merge those about several loops (JX605) with one advice, to jit a function
    that they all call."""
    kept, left = findings, [f for f in findings if f.code == "JX605" and _names_a_function(f)]
    while left:
        members = [f for f in left if fix_of(f) == fix_of(left[0])]
        left = [f for f in left if f not in members]
        loops = [Frame(*loop, "") for loop in sorted(filter(None, map(_timed_loop, members)))]
        if len(members) > 1:
            first, *rest = sorted(members, key=lambda f: -(f.seconds or 0.0))
            seconds = sum(f.seconds or 0.0 for f in members)
            title = message("operations-in-loops", loops=Names(tuple(loops), NAMES), seconds=Seconds(seconds))
            kept = merged(kept, first, rest, titles=True, title=title)
    return kept


def _names_a_function(f: Finding) -> bool:
    """Return whether the advice of ``f`` (JX605) is to jit a function, or several, that the loop calls."""
    fix = fix_of(f)
    return (
        fix is not None
        and not _passes_a_function(f)
        and not {"function", "functions"}.isdisjoint(fix.arguments)
    )


def _with_operations(run: Run, findings: list[Finding]) -> list[Finding]:
    """Return ``findings``, but add to each finding about lines that compile operations outside jit (JX133),
    and that jit solves, the seconds that these lines ran such operations, if they are a large part. Lines
    that another finding names with their time are left out, and so are operations that mostly compute."""
    alone = [
        f
        for f in findings
        if f.code == "JX133" and f.seconds and _is_jit(f) and not _creates(f)
        if not isinstance(f.title, Message) or f.title.slug not in ("with-running", "with-compiling")
    ]
    timed = {place for f in findings if f.code in TIMED for place in _lines(f)} | computing_operations.lines(
        run
    )
    lines = {place: f for f in alone for place in _lines(f)}
    times: dict[int, list[LineTime]] = {}
    for doing, t in line_times.entries(run) if lines else ():
        of = next((lines[at.place] for at in t.stack if at.place in lines), None)
        if doing == OPERATIONS and of is not None and timed.isdisjoint(at.place for at in t.stack):
            times.setdefault(id(of), []).append(t)
    found = []
    for f in findings:
        more = line_times.sure_seconds(times.get(id(f), []))
        if more is not None and more >= PART_TO_RUN * (f.seconds or 0.0):
            title = message("with-running", finding=f.title, seconds=Seconds(more))
            f = msgspec.structs.replace(f, title=title, seconds=(f.seconds or 0.0) + more)
        found.append(f)
    return found


def _passes_a_function(running: Finding) -> bool:
    """Return whether the finding ``running`` (JX605) is about a function that a library calls."""
    fix = fix_of(running)
    of_function = {"fix-jit-passed-function", "fix-jit-passed-method"}
    return fix is not None and not of_function.isdisjoint(jit_obstacles.slugs(fix))


def _in_loop_of(run: Run, compiled: Finding, running: Finding) -> bool:
    """Return whether the finding ``compiled`` (JX133) is about lines of the loop of the finding ``running``
    (JX605) itself, which jit of an iteration would compile together, and not about creating parameters."""
    timed = _timed_loop(running)
    if compiled.fix is None or _creates(compiled) or timed is None:
        return False
    file, first = timed
    loop = loop_calls.loop_from(sources.of(run)(file), first)
    last = (loop.end_lineno or first) if loop is not None else first
    return all(at[0] == file and first <= at[1] <= last for at in _lines(compiled))


def _with_all_compilations(
    kept: list[Finding], running: Finding, compiled: Sequence[Finding]
) -> list[Finding]:
    """Return ``kept``, but merge the findings ``compiled`` (JX133), all about lines of one loop, into
    ``running``, the finding about the time of this loop."""
    seconds = sum(f.seconds or 0.0 for f in compiled)
    return merged(
        kept,
        running,
        compiled,
        titles=True,
        title=message("with-compiling", finding=running.title, seconds=Seconds(seconds)),
        severity=WARNING if WARNING in (f.severity for f in (running, *compiled)) else running.severity,
        seconds=(running.seconds or 0.0) + seconds,
        at_most=True,
    )


def _runs(run: Run, compiled: Finding, running: Finding) -> bool:
    """Return whether the advice of ``compiled`` (JX133) to jit a function, or its lines, reaches most of the
    operations at the lines of ``running``, a finding about the time of a loop."""
    fix, lines = fix_of(compiled), _lines(running)
    name = fix.arguments.get("function") if fix is not None else None
    times = [t for doing, t in line_times.entries(run) if doing == OPERATIONS and t.stack[0].place in lines]
    jitted = _lines(compiled)
    inside = [
        t
        for t in times
        if any(
            (at.function.replace(".<locals>", "") == name) if name else at.place in jitted for at in t.stack
        )
    ]
    return 2 * sum(t.seconds for t in inside) >= sum(t.seconds for t in times)


def _with_time_of_line(run: Run, findings: list[Finding]) -> list[Finding]:
    """Return ``findings``, but merge each finding about the time of operations in a loop (JX605) into the
    finding about the line that takes most of this time: about writes into a large array (JX607), items that
    are copied one at a time (JX604), or copies of which few rows are used (JX602)."""
    kept = list(findings)
    for running in [f for f in findings if f.code == "JX605"]:
        here = (f for f in kept if _is_time_of(f) and same_line(f.source, running.source))
        # A list whose conversion takes less than half of the time: the loop has other costs.
        half = (running.seconds or 0.0) / 2
        line = next((f for f in here if slug_of(f) != "fix-convert-list" or (f.seconds or 0.0) >= half), None)
        if line is not None:
            severity = WARNING if WARNING in (line.severity, running.severity) else line.severity
            seconds = running.seconds or 0.0
            if line.code == "JX607" and line.source is not None:  # waiting, too, is for the copies
                seconds = max(seconds, line_times.seconds_at(run, {line.source.place}) or 0.0)
            kept = merged(kept, line, [running], titles=True, severity=severity, seconds=seconds)
    for running in [f for f in kept if f.code == "JX605" and _is_jit(f)]:
        # The arrays of an iteration that is to be jitted are no items of a batch.
        copied = [f for f in kept if f.code == "JX604" and _copied_in(run, f, running)]
        kept = merged(kept, running, copied, titles=True, seconds=running.seconds) if copied else kept
    jitted = {f.subject: f for f in kept if f.code == "JX605" and _is_jit(f)}
    for f in [f for f in kept if f.code == "JX607" and not f.seconds]:
        loop = jitted.get(("JX605", *_loop_of(f)))
        if loop is not None and isinstance(f.title, Message):
            # The writes of a loop whose operations are to be jitted are then inside jit, too.
            seconds = loop.seconds or 0.0
            whole = line_times.seconds_in_loop(run, [f.source] if f.source is not None else ())
            more = max(0.0, (whole or 0.0) - seconds)
            fields = {name: f.title.fields[name] for name in ("expression", "bytes")}
            title: Words = message("with-copies", finding=loop.title, more=Seconds(more), **fields)
            title = title if more >= PART_TO_RUN * seconds else loop.title
            fix, write = fix_of(loop), fix_of(f)
            if fix is not None and write is not None and slug_of(loop) != "fix-scan-loop":
                fix = extended(fix, "fix-donate-written", name=str(write.arguments["name"]))
            kept = merged(kept, loop, [f], titles=True, title=title, fix=fix, seconds=seconds + more)
    return kept


def _copied_in(run: Run, f: Finding, running: Finding) -> bool:
    """Return whether the finding ``f`` is about small arrays that the loop of ``running`` (JX605) copies one
    at a time, itself or in a function that it calls, and takes far less time than ``running``."""
    timed = _timed_loop(running)
    if slug_of(f) != "fix-copy-batch" or timed is None:
        return False
    file, first = timed
    loop = loop_calls.loop_from(sources.of(run)(file), first)
    helper = f.title.fields.get("helper") if isinstance(f.title, Message) else None
    called = helper.fields.get("caller") if isinstance(helper, Message) else f.source
    if not isinstance(called, Frame) or called.file != file or loop is None:
        return False
    return spans(loop, called.line) and MORE * (f.seconds or 0.0) <= (running.seconds or 0.0)


def _loop_of(f: Finding) -> tuple[str, int] | tuple[()]:
    """Return (file, first line) of the loop that the title of ``f`` names; empty if it names none."""
    loop = f.title.fields.get("loop") if isinstance(f.title, Message) else None
    return loop.place if isinstance(loop, Frame) else ()


def _is_time_of(f: Finding) -> bool:
    """Return whether ``f`` is about what takes the time of operations on one line."""
    fix = fix_of(f)
    return f.code in ("JX604", "JX607") or (f.code == "JX602" and fix is not None and fix.kind == "index")


def _named(refused: Finding, path: str | None) -> Words:
    """Return the title of the finding ``refused`` (JX503) about a result, with the name ``path`` by which the
    next function receives the result."""
    title = refused.title
    value = title.fields.get("value") if isinstance(title, Message) else None
    if not isinstance(title, Message) or not isinstance(value, Message) or value.slug != "the-result":
        return title
    named = message("the-result-named", **value.fields, name=path)
    return msgspec.structs.replace(title, fields={**title.fields, "value": named})


def _is_jit(f: Finding) -> bool:
    """Return whether the advice of ``f`` is to jit something."""
    fix = fix_of(f)
    return fix is not None and fix.kind == "jit"


def _creates(f: Finding) -> bool:
    """Return whether the advice of ``f``, a finding of JX133, is about a line that creates parameters."""
    fix = fix_of(f)
    return fix is not None and fix.arguments.get("parameters") is True


def _lines(f: Finding) -> set[tuple[str, int]]:
    """Return (file, number) of the lines that the finding ``f`` names."""
    return {at.place for at in (f.source, *(e.source for e in f.evidence)) if at is not None}


def _with_what_was_passed_on(run: Run, findings: list[Finding]) -> list[Finding]:
    """Return ``findings``, but merge those about several functions whose arguments became 64 bits wide in the
    same way (JX102), or were committed to a device (JX116). The title of the merged finding is that of the
    function that recompiled first."""
    changes: dict[Hashable, list[tuple[int, Finding]]] = {}
    for f in findings:
        again = _compilations(run, f)
        if f.code in ("JX102", "JX116") and again:
            earliest = min(again, key=lambda c: c.t_ns)
            change = _passed_on(f.code, causes.of(run, earliest))
            if change is not None:
                changes.setdefault((earliest.process.id, change), []).append((earliest.t_ns, f))
    for change, members in changes.items():
        members.sort(key=lambda pair: pair[0])
        first, *rest = (f for _, f in members)
        names = _other_functions(run, first, rest)
        if names:
            also = message("also-recompiled", names=Names(tuple(names)))
            title = message("passed-on", first=first.title, also=also)
            findings = merged(findings, first, rest, title=title, fix=_from_the_start(first, change))
    return findings


def _of_one_class(run: Run, findings: list[Finding]) -> list[Finding]:
    """Return ``findings``, but merge those about static arguments of several functions that are objects of
    one class without ``__eq__`` and were created again (JX108). The title of the merged finding is that of
    the function that cost most."""
    classes: dict[str, list[Finding]] = {}
    for f in findings:
        type = _class_compared_by_identity(run, f) if f.code == "JX108" else None
        if type is not None:
            classes.setdefault(type, []).append(f)
    for type, members in classes.items():
        name = type.rpartition(".")[2].partition(" ")[0]
        first, *rest = sorted(members, key=lambda f: -(f.seconds or 0.0))
        names = _other_functions(run, first, rest)
        if not names:
            continue
        also = message("also-recompiled", names=Names(tuple(names)))
        findings = merged(
            findings,
            first,
            rest,
            title=message("passed-on", first=first.title, also=also),
            fix=Fix(message("fix-share-object", name=name, made=_made(run, members, name)), "create_once"),
            seconds=sum(f.seconds or 0.0 for f in members),
        )
    return findings


def _of_one_definition(findings: list[Finding]) -> list[Finding]:
    """Return ``findings``, but merge those about functions that are defined again (JX110) on one line, with
    the same advice: functions of one definition that capture other values."""
    same: dict[Hashable, list[Finding]] = {}
    for f in findings:
        if f.code == "JX110" and f.source is not None and f.fix is not None:
            same.setdefault((f.source.place, slug_of(f)), []).append(f)
    for first, *rest in same.values():
        if not rest or not isinstance(first.title, Message):
            continue
        numbers = [f.title.fields.get("n") for f in rest if isinstance(f.title, Message)]
        n = sum(number if isinstance(number, int) else 1 for number in numbers)
        seconds = sum(f.seconds or 0.0 for f in rest)
        more = message("captured-others", n=Count(n, "time"), seconds=Seconds(seconds))
        title = message("passed-on", first=first.title, also=more)
        seconds += first.seconds or 0.0
        findings = merged(findings, first, rest, title=title, seconds=seconds)
    return findings


def _class_compared_by_identity(run: Run, f: Finding) -> str | None:
    """Return the class (with its module) of the static argument that the finding ``f`` is about, if the class
    has no ``__eq__``. Return None if it has one, or if the argument is unknown."""
    for c in reversed(_compilations(run, f)):  # the title is about the latest
        same = [x for x in causes.of(run, c) if x.kind == "static_identity" and x.path == f.path]
        if any(isinstance(x.detail, StaticDetail) and x.detail.why == NO_EQ for x in same):
            found = next((s for s in c.key.static if s.path == f.path), None) if c.key is not None else None
            return found.type if found is not None else None
    return None


def _compilations(run: Run, f: Finding) -> list[Compilation]:
    """Return the compilations in the evidence of the finding ``f``."""
    return [c for e in f.evidence if (c := run.compilations.get(e.compilation or "")) is not None]


def _made(run: Run, members: Sequence[Finding], name: str) -> Message | None:
    """Return a message with the user's lines that create objects of the class ``name``, or that deep-copy
    objects whose methods recompiled. Return None if no such line is found. Only files on the call stacks of
    the recompiles in ``members`` are searched."""
    text, frames, objects = sources.of(run), list[Frame](), set[str]()
    for c in (c for f in members for c in _compilations(run, f)):
        frames += c.lines
        if c.site is not None and c.missed is not None:
            call = call_at(text(c.site.file), c.site.line, c.missed.column, c.function.seen.name)
            if call is not None and isinstance(call.func, ast.Attribute):
                objects.add(last_name(call.func.value) or "")
    objects.discard("self")
    lines = list[Frame]()
    for file in dict.fromkeys(at.file for at in frames):
        lines += [Frame(file, n, "") for n in line_names.lines_calling(text(file), {name})]
        for n in line_names.lines_calling(text(file), {"deepcopy"}):
            if objects & set(re.findall(r"\w+", sources.line(run, Frame(file, n, "")))):
                lines.append(Frame(file, n, ""))
    return message("made-at-lines", lines=Names(tuple(lines), LINES, "lines")) if lines else None


def _other_functions(run: Run, first: Finding, rest: Sequence[Finding]) -> list[str | Message]:
    """Return the names of the functions of the findings ``rest``, without the function of ``first``. If there
    are many, return only some, and a message with the number of the others."""
    others = dict.fromkeys(f.function for f in rest if f.function not in (None, first.function))
    names: list[str | Message] = [run.functions[n].display_name for n in others if n in run.functions]
    if len(names) > NAMES + 1:
        names[NAMES:] = [message("more-functions", n=len(names) - NAMES)]
    return names


def _from_the_start(first: Finding, change: Hashable) -> Fix | None:
    """Return the advice for several functions that recompiled because of one ``change``: (process id, result
    of ``_passed_on``). ``first`` is the finding about the function that recompiled first."""
    match change:
        case (_, ("JX102", str() | None as before, str() as after)):
            words = message(
                "fix-dtype-from-start",
                before=before or "?",
                after=after,
                path=first.path or "each changed argument",
            )
            return Fix(words, "cast", {"dtype": after})
    return extended(first.fix, "fix-commit-from-start")


def _passed_on(code: str, recompile_causes: Sequence[Cause]) -> Hashable | None:
    """Return the change of an argument that computations pass on to their results: ``("JX102", "float32",
    "float64")`` if the argument became 64 bits wide, ``("JX116",)`` if it was committed to a device.
    ``recompile_causes`` are the causes of a recompile. Return None if there is no such change."""
    for cause in recompile_causes:
        before, after = cause.before, cause.after
        if code == "JX102" and cause.kind == "dtype" and isinstance(after, ArrayType):
            now, then = after.dtype or "", before.dtype if isinstance(before, ArrayType) else None
            return (code, then, now) if now in WIDE else None
        if code == "JX116" and isinstance(after, Commitment):
            return (code,) if after.committed else None
    return None


def _without_what_jit_takes_in(run: Run, findings: list[Finding]) -> list[Finding]:
    """Return ``findings``, but merge a finding about recompiles for other sizes (JX101) into the finding that
    advises to jit a whole line (JX133), if transforms outside jit (``jax.grad``) on this line caused all
    these recompiles."""
    for line in [f for f in findings if f.code == "JX133" and _is_jit(f)]:
        inner = [f for f in findings if f.code == "JX101" and _all_through(run, f, line.subject)]
        if inner:
            findings = merged(findings, line, inner)
    return findings


def _with_functions_below(run: Run, findings: list[Finding]) -> list[Finding]:
    """Return ``findings``, but merge a finding whose advice is jit, or about a loop over an array (JX133),
    into one that advises to jit a function or the iteration of a loop (JX133 or JX605), if calls of this
    function, or this loop, led to all compilations in the evidence of the merged finding."""
    below = [
        f for f in findings if f.code == "JX133" and (_is_jit(f) or slug_of(f) in iterated_arrays.ITERATES)
    ]
    for inner in [f for f in below if not _creates(f)]:
        compiled = _compilations(run, inner)
        callers = [{at.function.replace(".<locals>", "") for at in c.lines} for c in compiled]
        longer = [f for f in findings if f is not inner and (f.seconds or 0.0) >= (inner.seconds or 0.0)]
        others = longer if inner in findings else []
        outer = next((f for f in others if callers and all(_to_jit(f) & each for each in callers)), None)
        outer = outer or next((f for f in others if _in_jitted_loop(run, f, compiled)), None)
        if outer is not None:
            title, seconds = outer.title, inner.seconds or 0.0
            if isinstance(title, Message) and title.slug == "with-compiling":
                before = title.fields["seconds"]
                both = Seconds(seconds + ((before.seconds or 0.0) if isinstance(before, Seconds) else 0.0))
                title = msgspec.structs.replace(title, fields={**title.fields, "seconds": both})
            findings = merged(findings, outer, [inner], title=title, at_most=True)
    return findings


def _in_jitted_loop(run: Run, f: Finding, compiled: Sequence[Compilation]) -> bool:
    """Return whether ``f`` advises to jit the iteration of a loop that led to all of ``compiled``."""
    fix = fix_of(f)
    if fix is None or "fix-jit-iteration" not in jit_obstacles.slugs(fix) or not compiled:
        return False
    match f.subject:
        case ("JX605", str(file), int(line)) | (str(file), int(line)):
            loop = loop_calls.loop_from(sources.of(run)(file), line)
        case _:
            return False
    return loop is not None and all(
        any(at.file == file and spans(loop, at.line) for at in c.lines) for c in compiled
    )


def _to_jit(f: Finding) -> set[str]:
    """Return the names of the functions that the advice of ``f``, about operations outside jit, says to
    jit."""
    fix = fix_of(f) if f.code in OUTSIDE_JIT else None
    if fix is None or fix.kind != "jit":
        return set()
    names = [fix.arguments.get("function"), *fix.arguments.get("functions", ())]
    return {name for name in names if isinstance(name, str)}


def _with_unrolled_loop(run: Run, findings: list[Finding]) -> list[Finding]:
    """Return ``findings``, but merge a finding about an unrolled loop (JX202) into the finding about
    recompiles for each number of its iterations (JX107), whose advice rewrites this loop."""
    for counted in findings:
        fix = fix_of(counted)
        if fix is None or fix.kind != "fori_loop":
            continue
        file, first = fix.arguments["loop"]
        loop = loop_calls.loop_from(sources.of(run)(file), first)
        last = (loop.end_lineno or first) if loop is not None else first
        unrolled = [
            f
            for f in findings
            if f.code == "JX202" and f.source is not None
            if f.source.file == file and first <= f.source.line <= last
        ]
        findings = merged(findings, counted, unrolled, titles=True, seconds=counted.seconds)
    return findings


def _all_through(run: Run, resized: Finding, line: object) -> bool:
    """Return whether all recompiles in the evidence of the finding ``resized`` were made by transforms
    outside jit (``jax.grad``, ``jax.vmap``), for a call on ``line`` (file, line)."""
    again = [run.compilations.get(e.compilation or "") for e in resized.evidence]
    return bool(again) and all(
        c is not None
        and c.entry == "transform"
        and c.site is not None
        and line in [at.place for at in c.lines]
        for c in again
    )


def _recompile(finding: Finding) -> dict[str, Field]:
    """Return the function, the path and the cause of the recompile that ``finding`` (JX115) is
    about: ``{"function": ..., "path": ..., "cause": ...}``."""
    fields = finding.title.fields if isinstance(finding.title, Message) else {}
    return {"function": fields.get("function"), "path": finding.path, "cause": fields.get("cause")}


def _follows(run: Run, recompiled: Finding, refused: Finding) -> bool:
    """Return whether a result in the finding ``refused`` (JX503), which is not sharded as requested, seems to
    cause the recompile in the finding ``recompiled`` (JX115): by the path of the argument, or by its type and
    the line that created it."""
    of, path = refused.subject[:2] if isinstance(refused.subject, tuple) else (None, None)
    if of != RESULT:
        return False
    if path and (recompiled.path or "").endswith(str(path)):
        return True
    again = run.compilations.get(recompiled.evidence[0].compilation or "") if recompiled.evidence else None
    before = causes.compared_with(run, again) if again is not None else None
    function = run.functions.get(refused.function or "")
    if before is None or before.key is None or function is None:
        return False
    calls = {c.site.place for c in function.compilations if c.site is not None}
    made = before.made_at(recompiled.path or "")
    leaf = next((leaf for leaf in before.key.arguments if leaf.path == recompiled.path), None)
    return (
        made is not None
        and made.place in calls
        and leaf is not None
        and short_aval(leaf.shape, leaf.dtype) == _aval(refused)
    )


def _aval(refused: Finding) -> object:
    """Return the type of the result in the title of ``refused`` (JX503); None if unknown."""
    value = refused.title.fields.get("value") if isinstance(refused.title, Message) else None
    return value.fields.get("aval") if isinstance(value, Message) else None
