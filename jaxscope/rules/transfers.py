"""Rules JX601 (each step waits for the device, because it reads a value), JX602 (large arrays are copied
between host and device) and JX511 (an argument is on another device than the program)."""

from __future__ import annotations

import ast
import itertools
import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Sequence

import msgspec

from jaxscope.analysis import line_names, sizes_under_jit
from jaxscope.analysis.element_reads import draws_one
from jaxscope.analysis.loop_calls import (
    argument,
    call_at,
    given_to_object,
    is_put_ahead,
    loop_from,
    reaches_next_iteration,
    set_in_same_iteration,
)
from jaxscope.analysis.paths import root
from jaxscope.analysis.paths import root as path_root
from jaxscope.analysis.source_lines import (
    depends_on_a_condition,
    ends_the_loop,
    in_a_loop,
    keeps_its_value,
    kept_from_iteration_before,
    loop_around,
    only_passed_to,
    prints_its_value,
    reached_now_and_then,
    returns_its_value,
    runs_once,
    tests_a_remainder_first,
    waits_before,
    whole_condition,
)
from jaxscope.analysis.syntax import Syntax, assigned_calls, expression, function_around, last_name, syntax
from jaxscope.model import line_times, payers, sources
from jaxscope.model import transfers as model
from jaxscope.model.records import Compilation, Function, cached_until_changed
from jaxscope.model.run import Run
from jaxscope.model.transfers import BETWEEN, NOT_ASKED, TO_DEVICE, TO_HOST, Transfer
from jaxscope.rules import element_reads, library_calls
from jaxscope.rules.finding_parts import at_line
from jaxscope.rules.registry import rule
from jaxscope.rules.shardings import moved
from jaxscope.schema.findings import CERTAIN, LIKELY, NOTE, WARNING, Evidence, Finding, Fix, fix_of, slug_of
from jaxscope.schema.keys import Frame, same_line
from jaxscope.schema.messages import Bytes, Count, Field, Message, Names, Parts, Percent, Seconds, message

# A read value that its own line computes from a Python number: int(jnp.clip(jnp.asarray(i), 0, n))
FROM_PYTHON = re.compile(r"\w\(.*\b(?:jnp|jax\.numpy)\.a?s?array\(")
_COUNTS = re.compile(r"%.*==|==.*%")  # the condition of something that is done in every nth step
# A call that writes arrays to a file
SAVES = re.compile(r"(\w+\.)*(dump|dumps|save|savez|savez_compressed|save_file|save_checkpoint|to_bytes)\(")
# A line copies in each step if it does so in at least FEWEST_STEPS steps, and in at least MOST_STEPS of all
# steps since its first copy.
FEWEST_STEPS, MOST_STEPS = 8, 0.9
PHASE = 0.1  # a line that stops copying before the end must have copied in this share of all steps
FEWEST = 20  # copies that are worth a finding if steps are not counted
FEWEST_A_STEP = 4  # copies in one step, made by a loop inside the step, that are worth a finding
MUCH, MUCH_UNCOUNTED = 0.05, 0.2  # least share of time spent waiting: with steps, without
FEW = 0.01  # share of the seconds of the run: a finding that saves less is a note
FEW_ON_A_CPU = 0.1  # the same on a CPU, where the host's code and the computation share the cores
ALMOST_ALL = 0.9  # share of the waits: advice that saves at least this share saves all of them, in words
LARGE, OFTEN = 8 << 20, 4  # bytes of one copy, and number of copies, that are worth a finding
ROWS, IN_ALL = 1 << 20, 1 << 30  # bytes of one copy, and of all, if the line then takes some rows of the copy
INTO_JIT = "fix-read-for-several"  # slug of the advice to compute what a loop reads in the jitted function
WHOLE_LOOP = ("fix-read-for-method", INTO_JIT, "fix-copy-several")  # slugs of advice for several lines
PRINT_LESS = "fix-print-less"
READ_LESS = frozenset({"fix-read-less", "fix-copy-several", PRINT_LESS})  # slugs of similar advice
TO_TEXT = frozenset({"print", "format"})  # kinds of copies after which NumPy makes text of the array
LITTLE = 1 << 16  # bytes: a smaller copy takes no time compared with the computation
SMALL = 1 << 20  # bytes: a smaller copy between devices is only worth a note, unless it takes much time


@rule("JX601", "host-copy-each-step", WARNING)
def host_copy(run: Run) -> Iterator[Finding]:
    """Yield findings about lines at which the program waits in each step or in a loop for a value from the
    device, and need not. Lines of one loop with similar advice have one finding together."""
    loops: dict[tuple[Hashable, ...], list[Finding]] = {}
    for at, above, found in sorted(_waiting(run), key=lambda one: one[0].place):
        header = loop_from(sources.of(run)(at.file), at.line)
        if isinstance(header, ast.For) and isinstance(header.iter, (ast.Name, ast.Attribute)):
            continue  # a loop over an array, about which there are JX133 and JX605
        in_loops = (
            (line, loop_around(sources.of(run)(line.file), line.line)) for line in (at, above) if line
        )
        line, loop = next((pair for pair in in_loops if pair[1] is not None), (at, None))
        alone = at if loop is None else None
        fix = fix_of(found)
        advice = None if fix is None or slug_of(found) in READ_LESS else repr(fix.words)
        loops.setdefault((line.file, loop, alone, advice), []).append(found)
    for members in _by_advice(loops):
        yield _of_several_lines(members)


def _by_advice(loops: dict[tuple[Hashable, ...], list[Finding]]) -> Iterator[list[Finding]]:
    """Yield lists of findings; each list is to become one finding. Usually a list has the findings about one
    loop with the same advice; if one advice is to move the whole loop into a jitted function, it has all
    findings about this loop. ``loops`` is a dict: (file, loop, line of a finding that is in no loop, advice)
    -> findings."""
    advised = ((at, members, {slug_of(f) for f in members}) for at, members in loops.items())
    whole = {at[:2]: m for at, m, slugs in advised if at[1] is not None and INTO_JIT in slugs}
    for at, members in loops.items():
        if whole.get(at[:2], members) is members:
            others = (m for key, m in loops.items() if key[:2] == at[:2] and m is not members)
            yield [*members, *(f for m in others if at[:2] in whole for f in m)]


def _of_several_lines(members: list[Finding]) -> Finding:
    """Return one finding for ``members``, findings about lines of one loop that ``_by_advice`` put
    together."""
    first = members[0]
    if len(members) == 1:
        return first
    kept = next((f for f in members if slug_of(f) in WHOLE_LOOP), first)
    lines = dict.fromkeys(str(f.source.line) for f in members[1:] if f.source is not None)
    others = sum(f.seconds or 0.0 for f in members[1:])
    saved = message("saved-there", seconds=Seconds(others)) if others and first.seconds else None
    return msgspec.structs.replace(
        first,
        severity=WARNING if any(f.severity == WARNING for f in members) else NOTE,
        certainty=CERTAIN if all(f.certainty == CERTAIN for f in members) else LIKELY,
        title=message(
            "also-line" if len(lines) == 1 else "also-lines",
            first=first.title,
            numbers=Names(tuple(lines), 3),
            saved=saved,
        ),
        evidence=[e for f in members for e in f.evidence],
        fix=kept.fix,
        seconds=sum(f.seconds or 0.0 for f in members),
    )


@cached_until_changed
def _waiting(run: Run) -> list[tuple[Frame, Frame | None, Finding]]:
    """Return (line, the line that calls its function in a loop, finding) for each line at which the program
    waits in each step or in a loop for a value from the device, and need not. The second line is None if the
    first is in no helper function."""
    lines: dict[Hashable, list[Transfer]] = {}
    for t in model.transfers(run):
        if t.source is None or _repeats(run, t) is None or _is_needed_then(run, t, t.source):
            continue
        if element_reads.whole(run, t) is None:
            lines.setdefault((t.process.id, t.source.place), []).append(t)
    found = []
    for members in lines.values():
        t = model.summed(members)
        repeats = _repeats(run, t)
        if t.source is None or repeats is None:
            continue
        often, function = repeats
        views = t.views == t.count
        outside = _outside_waits(run, t, {m.kind for m in members})
        avoidable = _avoidable(t, outside)
        text = line_times.text_seconds(run, t.source) if any(m.kind in TO_TEXT for m in members) else None
        saved = avoidable + (text or 0.0)
        share = t.share or 0.0
        copies = message("copies", n=t.count, amount=_byte_count(t.bytes), share=Percent(share))
        expression = _expressions(run, members)
        title = _title(run, t, expression, often, function, avoidable)
        if text is not None:
            title = message("and-makes-text", waits=title, seconds=Seconds(text))
        if views:
            copies = message("copies-without-copy", copies=copies)
        finding = Finding(
            code="JX601",
            severity=WARNING if _mostly_waits(t) and share >= MUCH and _matters(run, saved) else NOTE,
            certainty=CERTAIN if function is not None or (t.steps and not _waits_often(t)) else LIKELY,
            title=title,
            source=t.source,
            evidence=[Evidence(copies, source=t.source), *_gap(t, outside)],
            fix=_instead(run, t, t.source),
            seconds=saved,
            at_most=True,
            timed=True,
        )
        found.append((t.source, model.called_at(run, t), finding))
    return found


def printing_lines(run: Run) -> set[tuple[str, int]]:
    """Return (file, line number) of the lines that JX601 advises to print less often."""
    return {at.place for at, _, f in _waiting(run) if slug_of(f) == PRINT_LESS}


def _repeats(run: Run, t: Transfer) -> tuple[Message, str | None] | None:
    """Return how often the line of ``t`` waits for a value from the device, and the name of the user's jitted
    function in the same loop (None: steps are counted, or the waits take long). Return None if ``t`` does not
    wait in each step or in a loop."""
    if t.direction != TO_HOST or t.kind in NOT_ASKED or not t.count or t.share is None:
        return None
    often, function = _how_often(run, t), None
    if often is None or (not _mostly_waits(t) and t.views != t.count):
        return None  # rarely, or the value was computed already, and only copied
    much = t.share >= MUCH_UNCOUNTED or _waits_often(t)
    if t.steps is None and not (_mostly_waits(t) and much):
        function = _loop_of_calls(run, t)
        if function is None:
            return None
    return often, function


def _mostly_waits(t: Transfer) -> bool:
    """Return whether at least half of the transfers ``t`` took longer than 0.1 ms."""
    return 2 * (t.waits or 0) >= (t.count or 0)


def _waits_often(t: Transfer) -> bool:
    """Return whether ``t`` has many transfers that took more than a fifth of the time since the previous
    transfer."""
    return t.close_waits >= FEWEST and (t.steps is None or t.close_waits >= FEWEST_A_STEP * t.steps)


def _is_needed_then(run: Run, t: Transfer, at: Frame) -> bool:
    """Return whether JX601 has no advice about the line ``at``, which makes the transfers ``t``. This is so
    if the program needs the values at that time, if the line reads the values of the previous step, or if it
    does not read in each step."""
    source, counted = sources.of(run)(at.file), t.steps is not None
    if t.text is not None and SAVES.match(t.text):
        return True  # a checkpoint
    if t.kind in TO_TEXT and _is_call_of_jax(source, t.text):
        return True  # JAX makes text of the residuals of jax.jacobian(f), if f is jitted
    call = library_calls.called_by_scipy(source, at.line)
    if call is not None and not library_calls.without_gradient(call):
        return True  # SciPy needs the value before it can go on
    if t.checks > 1 and 2 * t.ahead > t.checks and not _of_this_iteration(run, at):
        return True
    if kept_from_iteration_before(source, at.line) or waits_before(source, at.line):
        return True
    if tests_a_remainder_first(source, at.line):
        return True
    if counted:
        return False
    if reached_now_and_then(source, at.line, t.text) and not _beside_a_call(run, at, t.text):
        return True
    above = model.called_at(run, t)
    if above is not None and reached_now_and_then(sources.of(run)(above.file), above.line):
        return True
    if _called_now_and_then(source, at.line):
        return True
    return runs_once(source, at.line)  # then a loop within the library that the line calls reads the values


def _called_now_and_then(source: str | None, line: int) -> bool:
    """Return whether the file calls the function that contains ``line``, and only some iterations of a loop
    reach each of these calls."""
    function = function_around(syntax(source), line)
    name = function.name if function is not None else ""
    calls = [c.lineno for c in syntax(source).all_calls() if last_name(c.func) == name]
    return bool(calls) and all(reached_now_and_then(source, n) for n in calls)


def _is_call_of_jax(source: str | None, text: str | None) -> bool:
    """Return whether the expression ``text`` of a file with the text ``source`` calls a function of JAX, or
    what one returns: ``jax.jacobian(f)(x)``."""
    called = expression(text)
    while isinstance(called, ast.Call):
        called = called.func
    if called is None:
        return False
    return line_names.full_name(called, line_names.imported(syntax(source))).startswith("jax.")


def _gap(t: Transfer, outside: float | None) -> Iterator[Evidence]:
    """Yield evidence with an upper bound on the time that the device is idle in each step, because the host
    waits on the line of ``t`` before it calls the next program. Yield nothing if the bound is unknown, or if
    the device still had work at the end of some waits. ``outside``: the seconds in which the program does not
    wait."""
    if outside is not None and t.steps and t.steps > 1 and t.checks and not t.ahead:
        words = message(
            "device-waits", share=Percent(outside / t.span), seconds=Seconds(outside / (t.steps - 1))
        )
        yield Evidence(words, source=t.source)


def _outside_waits(run: Run, t: Transfer, kinds: Collection[str]) -> float | None:
    """Return an upper bound on the seconds, between the first and the last transfer of the line of ``t``, in
    which the program neither waited for a value nor compiled. None if unknown. ``kinds``: the kinds of the
    transfers that ``t`` is the sum of."""
    if t.process is not run.main:
        return None
    waited = t.blocked_since or 0.0
    for other in model.waits(run):
        if other.source != t.source or other.kind not in kinds:
            apart = max(0, t.first_ns - other.first_ns) + max(0, other.last_ns - t.last_ns)
            inside = other.blocked_since if other.first_ns <= t.first_ns else other.blocked_seconds
            waited += max(0.0, (inside or 0.0) - apart / 1e9)
    between = (c for c in run.compilations.values() if t.first_ns < c.t_ns < t.last_ns)
    waited += sum(c.seconds for c in between if c.process is t.process)
    return t.span - waited if 0 < waited < t.span else None


def _avoidable(t: Transfer, outside: float | None) -> float:
    """Return an upper bound on the seconds by which the run would be shorter if the line of ``t`` did not
    wait for the device. ``outside``: the host's seconds between the waits; None: unknown."""
    waited, each = t.blocked_seconds or 0.0, t.bytes_each
    little = t.views == t.count or (each is not None and each < LITTLE)
    # Without the waits, the host works while the device computes; but copying much may take the time itself.
    return min(waited, outside) if outside is not None and little else waited


def _title(
    run: Run, t: Transfer, expression: Field, often: Message, function: str | None, avoidable: float
) -> Message:
    """Return the title of the finding that the line of ``t`` waits for ``expression``. ``often`` and
    ``function`` are those of ``_repeats``; ``avoidable`` are the seconds that the run could be shorter."""
    seconds = t.blocked_seconds or 0.0
    fields: dict[str, Field] = {
        "expression": expression,
        "helper": _helper(run, t),
        "seconds": Seconds(seconds),
        "saved": message("saved", seconds=Seconds(avoidable)) if avoidable < ALMOST_ALL * seconds else None,
    }
    if t.steps is None and function is not None:
        return message("read-in-loop", n=t.count, function=function, **fields)
    return message("read-each-step" if t.views == t.count else "copied-each-step", often=often, **fields)


def _matters(run: Run, avoidable: float) -> bool:
    """Return whether ``avoidable`` seconds are at least 1 % (FEW) of the seconds of the run, on a CPU 10 %.
    True if the seconds of the run are unknown."""
    least = FEW_ON_A_CPU if run.platform == "cpu" else FEW
    return run.seconds is None or avoidable >= least * run.seconds


def _runs_loop(c: Compilation, t: Transfer, file: str, loop: tuple[int, int]) -> bool:
    """Return whether a line of ``loop``, (first line, last line) in ``file``, made the call ``c``. False if
    the function of the loop was called from another line for ``c`` than for the transfer ``t``."""
    own = [at for at in (t.source, t.caller, *t.above) if at is not None]

    def outside(lines: Sequence[Frame]) -> Frame | None:
        """Return the line that called the function of the loop; None: unknown."""
        inside = [k for k, x in enumerate(lines) if x.file == file and loop[0] <= x.line <= loop[1]]
        return lines[inside[-1] + 1] if inside and inside[-1] + 1 < len(lines) else None

    if not any(x.file == file and loop[0] <= x.line <= loop[1] for x in c.lines):
        return False
    called, other = outside(c.lines), outside(own)
    return called is None or other is None or called.place == other.place


def _loop_of_calls(run: Run, t: Transfer) -> str | None:
    """Return the name of the user's jitted function that is called in the loop around the line of ``t``, or
    around the line that calls the function of this line. Of several, return that with the most seconds of
    compilation; None if there is none."""
    for at in (t.source, model.called_at(run, t)):
        loop = loop_around(sources.of(run)(at.file), at.line) if at is not None else None
        if at is None or loop is None:
            continue
        seconds: Counter[str] = Counter()
        for f in run.functions.values():
            for c in f.compilations if f.user else ():
                if c.entry == "call" and _runs_loop(c, t, at.file, loop):
                    seconds[f.display_name] += round(1e9 * c.seconds)
        if seconds:
            return seconds.most_common(1)[0][0]
    return None


def _of_this_iteration(run: Run, line: Frame) -> bool:
    """Return whether the source shows that ``line`` reads a result of a jitted function of the user that was
    called in the same iteration."""
    return set_in_same_iteration(sources.of(run)(line.file), line.line, _calls_in(run, line.file))


def _beside_a_call(run: Run, line: Frame, text: str | None) -> bool:
    """Return whether each iteration of the innermost loop around ``line`` calls a jitted function of the user
    and reaches ``text``, an expression on the line: the calls are in no inner loop, and no ``if`` is around
    the expression."""
    source = sources.of(run)(line.file)
    loop = loop_around(source, line.line)
    inside = [n for n in _calls_in(run, line.file) if loop is not None and loop[0] <= n <= loop[1]]
    direct = bool(inside) and all(loop_around(source, n) == loop for n in inside)
    return direct and not depends_on_a_condition(source, line.line, text)


def _calls_in(run: Run, file: str) -> set[int]:
    """Return the numbers of the lines in ``file`` that call jitted functions of the user."""
    return {line for called, line in payers.call_lines(run) if called == file}


def _how_often(run: Run, t: Transfer) -> Message | None:
    """Return how often the line of ``t`` copies between host and device, as text: ``in each of 200 steps``,
    ``in each of 100 steps (steps 301 to 400)``, ``200 times``. None if that is not often enough for a
    finding."""
    if t.steps is not None:
        first = max(t.first_step or 1, 1)
        total = model.steps(run, t.process) or first + t.steps - 1
        last = min(t.last_step or total, total)
        ends = last < MOST_STEPS * total
        during = (last if ends else total) - first + 1
        if t.steps < max(FEWEST_STEPS, PHASE * total if ends else 0) or t.steps < MOST_STEPS * during:
            often = t.close_waits >= max(FEWEST, FEWEST_A_STEP * t.steps)
            return message("so-often", n=t.close_waits) if often else None
        each = round(t.count / t.steps) if t.count is not None and t.steps else 1
        times = message("times-a-step", n=each) if each > 1 else None
        phase = message("phase-of-steps", first=first, last=last) if ends else None
        if t.steps >= during:
            return message("in-each-step", times=times, steps=t.steps, phase=phase)
        return message("in-most-steps", times=times, steps=t.steps, since=during, phase=phase)
    return message("so-often", n=t.count) if t.count is not None and t.count >= FEWEST else None


def _helper(run: Run, t: Transfer) -> Message | None:
    """Return a clause with two lines, if the transfer ``t`` is in a helper function: the line of the transfer
    and the line that calls the helper, as in ``log.py:8, called at train.py:31``. Return None if it is in no
    helper."""
    above = model.called_at(run, t)
    return None if above is None else message("helper-line", line=t.source, caller=above)


def _expression(run: Run, t: Transfer) -> str:
    """Return the expression that caused ``t``, as source if known."""
    if t.kind == "bool" and t.text is not None and t.source is not None:
        whole = whole_condition(sources.of(run)(t.source.file), t.source.line, t.text)
        return whole or t.text
    return t.text or {"np.asarray": "np.asarray()", "print": "printing"}.get(t.kind, f"{t.kind}()")


def _expressions(run: Run, members: Sequence[Transfer]) -> Field:
    """Return the expression that caused ``members``, transfers of one line, or a clause with all of them."""
    found = tuple(dict.fromkeys(_expression(run, t) for t in members))
    return found[0] if len(found) == 1 else message("line-with", expressions=Names(found))


def _instead(run: Run, t: Transfer, at: Frame) -> Fix:
    """Return the advice for the line ``at``, which makes the transfers ``t``."""
    source = sources.of(run)(at.file)
    if library_calls.called_by_scipy(source, at.line) is not None:
        return Fix(message("fix-give-the-gradient"), "gradient")
    if t.kind == "bool" and ends_the_loop(source, at.line):
        return Fix(message("fix-test-less-often"), "read_less_often")
    if t.kind == "bool" and t.text is not None and _COUNTS.search(t.text):
        return Fix(message("fix-count-in-python"), "numpy")
    if t.kind == "bool":
        return Fix(message("fix-decide-on-device"), "decide_on_device")
    if t.kind in TO_TEXT:
        return Fix(message("fix-print-less"), "read_less_often")
    if t.text is not None and FROM_PYTHON.search(t.text) and not _calls_jitted(run, t):
        return Fix(message("fix-compute-on-host"), "numpy")
    new = sizes_under_jit.dynamic_slice(t.text) if t.kind == "int" else None
    if new is not None and t.text is not None:
        return Fix(message("fix-slice-on-device", new=new, expression=t.text), "dynamic_slice")
    indexed = sizes_under_jit.list_indexed(t.text) if t.kind == "int" else None
    if indexed is not None:
        words = message("fix-index-on-device", expression=t.text, list=indexed)
        return Fix(words, "stack", {"name": indexed})
    if draws_one(t.text):
        return Fix(message("fix-draw-on-host"), "numpy")
    above = model.called_at(run, t) if returns_its_value(source, at.line) else None
    used = [(sources.of(run)(line.file), line.line) for line in (at, above) if line is not None]
    method = next(filter(None, itertools.starmap(given_to_object, used)), None)
    if method is not None:
        return Fix(message("fix-read-for-method", method=method), "batch", {"method": method})
    function = only_passed_to(source, at.line, _calls_in(run, at.file))
    if function is not None and payers.takes_numbers(run, function):
        words = message("fix-pass-the-array", kind=t.kind, function=function)
        return Fix(words, "pass_array", {"function": function})
    through = next(filter(None, itertools.starmap(reaches_next_iteration, used)), None)
    if through is not None:
        return Fix(message("fix-read-for-several", name=through), "batch", {"name": through})
    if prints_its_value(source, at.line):
        return Fix(message("fix-print-less"), "read_less_often")
    donates = any(c.lowered is not None and c.lowered.donated for c in run.compilations.values())
    donated = message("not-if-donated") if donates else None
    if keeps_its_value(source, at.line):
        return Fix(message("fix-copy-several", donated=donated), "read_less_often")
    return Fix(message("fix-read-less", donated=donated), "read_less_often")


def _calls_jitted(run: Run, t: Transfer) -> bool:
    """Return whether the line of ``t`` calls a jitted function of the user."""
    return t.source is not None and t.source.place in payers.call_lines(run)


def _byte_count(n: int | None) -> Field:
    return message("bytes-unknown") if n is None else Count(n, "byte")


@rule("JX602", "large-transfer", WARNING)
def large(run: Run) -> Iterator[Finding]:
    """Yield findings about lines that copy large arrays between host and device often."""
    uncounted = set[tuple[str, str, int]]()
    for t in model.transfers(run):
        if t.direction not in (TO_HOST, TO_DEVICE) or t.source is None or t.kind == "constant":
            continue
        each, rows = t.bytes_each, None
        if each is not None and each >= ROWS and t.direction == TO_DEVICE and t.count is not None:
            rows = _rows_of_copy(run, t)
        if each is None or (each < LARGE and (rows is None or (t.bytes or 0) < IN_ALL)):
            continue
        if t.count is None and t.function is not None and _looped(run, t):
            at = (t.function.id, t.source.file, t.source.line)
            if at not in uncounted:  # calls at this line with other arguments: only the largest
                uncounted.add(at)
                yield _large_in_a_loop(run, t, each)
        if t.count is None or t.count < OFTEN:
            continue
        if t.direction == TO_HOST and t.views == t.count:
            continue
        source = sources.of(run)(t.source.file)
        if t.steps is None and (runs_once(source, t.source.line) or _puts_a_tree(run, t, t.source)):
            continue  # the copies are the arrays of one tree
        if t.direction == TO_DEVICE and is_put_ahead(source, t.source.line):
            continue  # the program does already what is advised
        shared = run.platform == "cpu"
        to_host = t.direction == TO_HOST
        what = _what(t)
        fix = Fix(message("fix-put-once"), "device_put")
        if rows is not None:
            fix = Fix(message("fix-index-before-copy", copy=rows), "index")
        yield Finding(
            code="JX602",
            severity=NOTE if shared else WARNING,
            certainty=CERTAIN,
            title=message(
                "large-transfer-to-host" if to_host else "large-transfer-to-device",
                what=what,
                helper=_helper(run, t),
                bytes=Bytes(t.bytes or each * t.count),
                n=t.count,
                **({} if to_host else {"devices": "the devices" if len(run.devices) > 1 else "the device"}),
            ),
            function=t.function.id if t.function else None,
            source=t.source,
            evidence=[Evidence(message("in-all", amount=_byte_count(t.bytes)), source=t.source)],
            fix=Fix(message("fix-copy-less"), "copy_less") if to_host else fix,
            seconds=t.blocked_seconds,
        )


def _puts_a_tree(run: Run, t: Transfer, at: Frame) -> bool:
    """Return whether the copies ``t`` to the devices, made by the line ``at``, are the arrays of one tree,
    such as the parameters of a checkpoint: they end before the first call of a jitted function of the user,
    or the loop around the line runs once and calls no such function."""
    if t.direction != TO_DEVICE:
        return False
    calls = payers.user_calls(run)
    if not calls:
        return False
    if t.last_ns < min(c.t_ns for c in calls):
        return True
    source = sources.of(run)(at.file)
    loop = loop_around(source, at.line, comprehensions=True)
    if loop is None or not runs_once(source, at.line, in_loop=True):
        return False
    return not any(f.file == at.file and loop[0] <= f.line <= loop[1] for c in calls for f in c.lines)


def _rows_of_copy(run: Run, t: Transfer) -> str | None:
    """Return the call that copies only the rows that the line of ``t`` uses: ``jnp.array(x[i])`` if the line
    has ``jnp.array(x)[i]``. Return None if the line takes no part of the copy, or is unknown."""
    if t.source is None:
        return None
    found = syntax(sources.of(run)(t.source.file))
    copies = [
        call
        for call in found.calls.get(t.source.line, [])
        if call.args and last_name(call.func) in ("array", "asarray", "device_put")
    ]
    for n in ast.walk(found.tree) if copies else ():
        if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Call) and n.value in copies:
            parts = n.slice.elts if isinstance(n.slice, ast.Tuple) else [n.slice]
            if not any(_leaves_out(part) and not _is_permutation(found, part) for part in parts):
                continue  # ``[..., None]``, ``[::-1]`` and ``[rng.permutation(n)]`` read the whole array
            part = ast.Subscript(n.value.args[0], n.slice, ast.Load())
            return ast.unparse(ast.Call(n.value.func, [part, *n.value.args[1:]], n.value.keywords))
    return None


def _leaves_out(index: ast.expr) -> bool:
    """Return whether ``index``, between the brackets of a subscript, may leave out a part of the array: an
    index, indices or a mask, or a slice with a bound."""
    if isinstance(index, ast.Slice):
        forwards = index.step is not None and not isinstance(index.step, ast.UnaryOp)
        return index.lower is not None or index.upper is not None or forwards
    return not isinstance(index, ast.Constant) or isinstance(index.value, int)


def _is_permutation(file_syntax: Syntax, index: ast.expr) -> bool:
    """Return whether ``index`` is a permutation of all indices, or a variable to which the program assigns
    one."""
    if isinstance(index, ast.Call):
        return last_name(index.func) == "permutation"
    calls = assigned_calls(ast.walk(file_syntax.tree))
    made = {name for name, call in calls if last_name(call.func) == "permutation"}
    return isinstance(index, ast.Name) and index.id in made


def _what(t: Transfer) -> str:
    """Return what copies the arrays of ``t``: an expression, or ``passing params (12 arrays) to apply``."""
    if t.text or not t.function:
        return t.text or t.kind
    trees: dict[str, list[str]] = {}
    for path in t.paths:
        trees.setdefault(path_root(path), []).append(path)
    names = [f"{name} ({len(of)} arrays)" if len(of) > 1 else of[0] for name, of in trees.items()]
    return f"passing {', '.join(names[:3])} to {t.function.seen.name}"


def _looped(run: Run, t: Transfer) -> bool:
    """Return whether the line of ``t``, which passes arguments to a jitted function, runs in each iteration
    of a loop, according to the source. False for other kinds of transfers."""
    if t.source is None or t.kind != model.ARGUMENT:
        return False
    source = sources.of(run)(t.source.file)
    return in_a_loop(source, t.source.line) and not reached_now_and_then(source, t.source.line)


def _large_in_a_loop(run: Run, t: Transfer, bytes_each: float) -> Finding:
    title = message(
        "large-transfer-each-call", what=_what(t), helper=_helper(run, t), bytes=Bytes(bytes_each)
    )
    return Finding(
        code="JX602",
        severity=NOTE if run.platform == "cpu" else WARNING,
        certainty=LIKELY,
        **at_line(title, t.source),
        function=t.function.id if t.function is not None else None,
        fix=Fix(message("fix-put-once"), "device_put"),
    )


@rule("JX511", "array-elsewhere", WARNING)
def elsewhere(run: Run) -> Iterator[Finding]:
    """Yield findings about lines that pass an argument which is on another device than the program."""
    reported, lines = set(), set()  # functions and lines that JX508 reports
    for function, (call, _) in moved(run):
        reported.add(function.id)
        lines.add(_line(call.site))
    amounts = {  # the same arrays, passed by another line
        (t.count, t.bytes)
        for t in model.transfers(run)
        if t.direction == BETWEEN and _line(t.source) in lines
    }
    for t in model.transfers(run):
        if t.direction != BETWEEN or t.kind != model.ARGUMENT or t.source is None:
            continue
        c = _call_at(run, t)
        f = c.function if c is not None else t.function
        if _copies_little(run, t, c, f) or (
            f.id in reported if f is not None else (t.count, t.bytes) in amounts
        ):
            continue
        paths = t.paths or (_paths_elsewhere(c) if c is not None else ())
        name = c.function.seen.name if c is not None else "a jitted function"
        often = message("in-each-call") if t.count is None else message("in-copies", n=t.count)
        amount = (
            None if t.bytes is None else message("copied-so-often", amount=_byte_count(t.bytes), often=often)
        )
        yield Finding(
            code="JX511",
            severity=WARNING if t.count is not None and (_costs(run, t) or not _small(t, SMALL)) else NOTE,
            certainty=CERTAIN,
            title=message(
                "argument-on-other-device",
                paths=Names(paths, 3, "arguments") if paths else "an argument",
                function=name,
                is_on="are" if len(paths) > 1 else "is",
                copied=amount,
            ),
            function=c.function.id if c is not None else None,
            source=t.source,
            evidence=[
                Evidence(_where(c, paths), compilation=c.id if c is not None else None, source=t.source)
            ],
            fix=_put_where_used(run, c, paths),
            seconds=t.blocked_seconds,
        )


def _copies_little(run: Run, t: Transfer, c: Compilation | None, f: Function | None) -> bool:
    """Return whether the copies ``t`` between devices, for the call ``c`` of ``f``, are few or small, or are
    made because the program requests them."""
    # The count is that of arrays, not of calls.
    each_call = len(_paths_elsewhere(c)) if c is not None and t.function is None else 1
    if t.count is not None and t.count < OFTEN * each_call:
        return True
    if _small(t, LITTLE) and not _costs(run, t):
        return True  # a key or a step number: the copy takes no time
    if f is not None and not f.user:
        return True  # a sharding constraint or a device_put: the program requests the copy
    return t.count is None and f is not None and f.calls == 1


def _costs(run: Run, t: Transfer) -> bool:
    return _matters(run, t.blocked_seconds or 0.0)


def _small(t: Transfer, limit: int) -> bool:
    return t.bytes_each is not None and t.bytes_each < limit


def _put_where_used(run: Run, c: Compilation | None, paths: tuple[str, ...]) -> Fix:
    """Return the advice to put the arguments ``paths`` of the call ``c`` on the program's devices."""
    passed = tuple(dict.fromkeys(name for path in paths if (name := _passed_as(run, c, path)) is not None))
    like = None if c is None else _argument_there(c)
    words = message(
        "fix-put-where-used",
        paths=Names(paths, 3, "arguments") if paths else "the copied array",
        named=message("passed-as", names=Names(passed, 3)) if passed else None,
        like=message("like-the-others", other=like) if like is not None else None,
        them="them" if len(paths) > 1 else "it",
    )
    return Fix(words, "device_put")


def _passed_as(run: Run, c: Compilation | None, path: str) -> str | None:
    """Return the variable that the call ``c`` passes for the argument ``path``, if its name differs from the
    parameter's; else None."""
    if c is None or c.site is None or c.missed is None:
        return None
    seen = c.function.seen
    call = call_at(sources.of(run)(c.site.file), c.site.line, c.missed.column, seen.name)
    passed = argument(call, seen.signature, root(path)) if call is not None else None
    if not isinstance(passed, (ast.Name, ast.Attribute)) or ast.unparse(passed) == root(path):
        return None
    return ast.unparse(passed)


def _argument_there(c: Compilation) -> str | None:
    """Return the path of an argument of ``c`` that is on the devices of the program. Return None if there is
    none."""
    target = model.devices_of_program(c)
    leaves = [leaf for leaf in model.arguments_read(c) if leaf.type == "jax.Array"]
    return next(
        (leaf.path for leaf in leaves if target is not None and model.devices_of(c, leaf) == target), None
    )


def _line(at: Frame | None) -> tuple[str, int] | None:
    return None if at is None else at.place


def _call_at(run: Run, t: Transfer) -> Compilation | None:
    """Return the latest recorded call at the line of ``t`` with an argument on other devices than the
    program's. None if there is none. If the function of ``t`` is known, only calls of that function count."""
    found = [
        c
        for c in (t.function.compilations if t.function is not None else run.compilations.values())
        if c.process is t.process and same_line(c.site, t.source) and _paths_elsewhere(c)
    ]
    return found[-1] if found else None


def _paths_elsewhere(c: Compilation) -> tuple[str, ...]:
    """Return the paths of the arguments that are on other devices than those on which the program of ``c``
    runs."""
    places = [
        (leaf.path, model.devices_of(c, leaf)) for leaf in model.arguments_read(c) if leaf.type == "jax.Array"
    ]
    target = model.devices_of_program(c)
    return tuple(path for path, at in places if at is not None and target is not None and at != target)


def _where(c: Compilation | None, paths: tuple[str, ...]) -> Message:
    if c is None or c.key is None:
        return message("copied-at-the-call")
    found = [
        message("argument-sharding", path=leaf.path, sharding=c.key.shardings[leaf.sharding].text)
        for leaf in c.key.arguments
        if leaf.path in paths and leaf.sharding is not None and leaf.sharding < len(c.key.shardings)
    ]
    arguments = message("parts", parts=Parts(tuple(found[:3]), between="; "))
    ran = c.compiled.devices if c.compiled is not None else None
    return message("program-on-devices", arguments=arguments, devices=ran) if ran else arguments
