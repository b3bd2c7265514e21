"""Merge findings that have one cause, and so one fix: an odd batch that recompiles every function and eager
operation that it passes through, or a loop whose operations outside jit are compiled and take time."""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable, Iterable, Sequence

import msgspec

from jaxscope.analysis import line_names, loop_calls
from jaxscope.analysis.avals import short_aval
from jaxscope.analysis.loop_calls import call_at
from jaxscope.analysis.sharding_audit import RESULT
from jaxscope.analysis.syntax import last_name
from jaxscope.model import causes, sources
from jaxscope.model.run import Run
from jaxscope.rules import iterated_arrays, resized_operations
from jaxscope.rules.loop_time import (
    OUTSIDE_JIT,
    advises_jit,
    compilations,
    lines_of,
    with_functions_below,
    with_time_to_run,
)
from jaxscope.rules.size_changes import LINES, NAMES, WIDE, on_their_lines, sizes
from jaxscope.schema.causes import NO_EQ, ArrayType, Cause, Commitment, Placement, StaticDetail
from jaxscope.schema.findings import (
    WARNING,
    Finding,
    Fix,
    extended,
    field_of,
    fix_of,
    merged,
    slug_of,
    slugs_of,
)
from jaxscope.schema.keys import Frame, same_line
from jaxscope.schema.libraries import REPLICATE_AXIS
from jaxscope.schema.messages import Count, Field, Message, Names, Seconds, Words, message

# Rules about arrays that are not split as they could be, from which repeated work may follow
NOT_SPLIT = frozenset({"JX401", "JX502", "JX503", "JX509", "JX512"})


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
    before = on_their_lines(f for f in run.functions.values() if f.operation)
    kept = resized_operations.merged(run, kept, lambda c: sizes(run, c, before.get(c.id)))
    kept = with_functions_below(run, with_time_to_run(run, iterated_arrays.with_time(run, kept)))
    kept = _of_replicas(run, _of_one_clearing(run, _with_lists(kept)))
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


def _named(refused: Finding, path: str | None) -> Words:
    """Return the title of the finding ``refused`` (JX503) about a result, with the name ``path`` by which the
    next function receives the result."""
    title = refused.title
    value = title.fields.get("value") if isinstance(title, Message) else None
    if not isinstance(title, Message) or not isinstance(value, Message) or value.slug != "the-result":
        return title
    named = message("the-result-named", **value.fields, name=path)
    return msgspec.structs.replace(title, fields={**title.fields, "value": named})


def _with_what_was_passed_on(run: Run, findings: list[Finding]) -> list[Finding]:
    """Return ``findings``, but merge those about several functions whose arguments became 64 bits wide in the
    same way (JX102), or were committed to a device (JX116). The title of the merged finding is that of the
    function that recompiled first."""
    changes: dict[Hashable, list[tuple[int, Finding]]] = {}
    for f in findings:
        again = compilations(run, f)
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


def _with_lists(findings: list[Finding]) -> list[Finding]:
    """Return ``findings``, but merge those about Python lists into one that advises to jit the operations of
    their line: waits for the index of a list (JX601), if its advice says what to do with this list, and lists
    of arrays that JAX converts (JX604), which cost nothing in a jitted function."""
    kept = findings
    for f in findings:
        fix = fix_of(f)
        indexed = field_of(fix, "fix-index-of-list", "line") if fix is not None else None
        lines = lines_of(f) if advises_jit(f) else ()
        parts = [
            g
            for g in kept
            if (
                slug_of(g) == "fix-index-on-device"
                and isinstance(indexed, Frame)
                and same_line(g.source, indexed)
            )
            or (slug_of(g) == "fix-stack-arrays" and g.source is not None and g.source.place in lines)
        ]
        if parts and f in kept:
            kept = merged(kept, f, parts, titles=True, seconds=f.seconds)
    return kept


def _of_one_clearing(run: Run, findings: list[Finding]) -> list[Finding]:
    """Return ``findings``, but merge those about recompiles after one clearing of JAX's caches (JX112,
    JX133)."""
    cleared = [f for f in findings if slug_of(f) == "fix-do-not-clear"]
    members = [f for f in cleared if fix_of(f) == fix_of(cleared[0])]
    if len(members) < 2:
        return findings
    first, *rest = sorted(members, key=lambda f: -(f.seconds or 0.0))
    names = [
        run.functions[f.function].display_name if f.function in run.functions else f.source for f in rest
    ]
    title = message("also-after-clearing", first=first.title, names=Names(tuple(filter(None, names)), NAMES))
    return merged(findings, first, rest, titles=True, title=title)


def _of_replicas(run: Run, findings: list[Finding]) -> list[Finding]:
    """Return ``findings``, but merge into one those that follow from ``replicate`` of Flax: its own
    compilations (JX133), and recompiles because its results have another mesh than those of ``jax.pmap``
    (JX120, JX133)."""
    placed = [f for f in findings if (fix := fix_of(f)) is not None and "fix-place-replicas" in slugs_of(fix)]
    following = [f for f in findings if f not in placed and f.code == "JX133" and _left_helper_mesh(run, f)]
    if not placed:
        return findings
    first, *rest = sorted((*placed, *following), key=lambda f: -(f.seconds or 0.0))
    line = next((f.source for f in placed if f.code == "JX133"), None)
    title = first.title
    if line is not None and not same_line(first.source, line):
        title = message("and-of-replicate", first=title, line=line)
    fix = Fix(message("fix-place-replicas"), "device_put")
    return merged(findings, first, rest, titles=True, title=title, fix=fix)


def _left_helper_mesh(run: Run, f: Finding) -> bool:
    """Return whether at least a third of the compilations of ``f`` are recompiles because an array that
    ``replicate`` made, with the mesh of JAX's helper, later had another mesh."""
    reasons = [causes.of(run, c)[:1] for c in compilations(run, f)]
    left = [
        c.before
        for reason in reasons
        for c in reason
        if isinstance(c.before, Placement) and any(axis == REPLICATE_AXIS for axis, *_ in c.before.mesh or ())
    ]
    return 3 * len(left) >= len(reasons) > 0


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
    for c in reversed(compilations(run, f)):  # the title is about the latest
        same = [x for x in causes.of(run, c) if x.kind == "static_identity" and x.path == f.path]
        if any(isinstance(x.detail, StaticDetail) and x.detail.why == NO_EQ for x in same):
            found = next((s for s in c.key.static if s.path == f.path), None) if c.key is not None else None
            return found.type if found is not None else None
    return None


def _made(run: Run, members: Sequence[Finding], name: str) -> Message | None:
    """Return a message with the user's lines that create objects of the class ``name``, or that deep-copy
    objects whose methods recompiled. Return None if no such line is found. Only files on the call stacks of
    the recompiles in ``members`` are searched."""
    text, frames, objects = sources.of(run), list[Frame](), set[str]()
    for c in (c for f in members for c in compilations(run, f)):
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
    for line in [f for f in findings if f.code == "JX133" and advises_jit(f)]:
        inner = [f for f in findings if f.code == "JX101" and _all_through(run, f, line.subject)]
        if inner:
            findings = merged(findings, line, inner)
    return findings


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
