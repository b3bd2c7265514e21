"""What the rules about avoidable misses share: calls of one function that missed for one reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import msgspec

from jaxscope.analysis.levels import LEVELS
from jaxscope.analysis.spelling import root, tokens
from jaxscope.model import causes, lengthened, predictions, sources
from jaxscope.model.names import number_of
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.rules import registry, resized
from jaxscope.rules.resized import SIZES, Change, Miss
from jaxscope.schema.findings import CERTAIN, LIKELY, NOTE, Cause, Evidence, Finding

EVIDENCE = 5  # compilations named in one finding
TOO = 3  # other causes named in one finding
# What differs for a reason of its own beside the decisive cause, and has to be mended, too.
CHANGED = {
    **dict.fromkeys(SIZES, "changed shape"),
    "dtype": "changed dtype",
    "weak_type": "changed its weak type",
    "prng": "changed its key type",
    "tree": "changed its containers",
    "static_value": "changed its value",
    "tree_static": "changed its value",
    "static_identity": "was another object",
    "call_form": "was passed differently",
    "sharding": "changed its sharding",
    "mesh": "changed its mesh",
    "committed": "was committed otherwise",
    "memory_kind": "changed its memory kind",
    "layout": "changed its layout",
}
FOLLOWED = frozenset({"transform", "new_function", "unknown"})  # whatever else differs follows from these
# Kinds of cause that are a property of one array.
OF_AN_ARRAY = frozenset({"shape", "rank", "dtype", "weak_type", "sharding", "committed", "layout", "memory_kind", "mesh"})  # fmt: skip


class Group(msgspec.Struct, frozen=True):
    """Calls of ``function`` whose decisive cause is of one kind at one path, in order of time.

    ``came_back``: the array that lies elsewhere is what the function itself returned. ``lengthened``: so is the
    array of another size, in most of the latest calls. ``source``: the text of a file of the user's, where it
    may be shown.
    """

    function: Function
    compilations: list[Compilation]
    causes: list[Cause]
    came_back: bool = False
    lengthened: bool = False
    source: Callable[[str], str | None] = sources.text

    @property
    def cause(self) -> Cause:
        return self.causes[-1]

    @property
    def seconds(self) -> float:
        return sum(c.seconds for c in self.compilations)

    @property
    def name(self) -> str:
        return self.function.name.replace(".<locals>", "")


_ADVICE: dict[str, list[Callable[[Group], str | None]]] = {}  # kind of cause -> what to do about it, by rule


def advice(group: Group) -> str | None:
    """What to do about misses of this cause, in the words of the rule about them; None where there is none."""
    registry.rules()  # fills the table
    found = (advise(group) for advise in _ADVICE.get(group.cause.kind, []))
    return next((fix for fix in found if fix is not None), None)


def group_of(run: Run, compilations: list[Compilation], found: list[Cause]) -> Group:
    """The group of these compilations with these decisive causes; at least one."""
    last, cause = compilations[-1], found[-1]
    moved = cause.kind in ("sharding", "mesh") and cause.path not in (None, "context")
    back = moved and cause.path is not None and predictions.came_back(run, last, cause.path)
    longer = lengthened.mostly(run, list(zip(compilations, found, strict=True)))
    return Group(last.function, compilations, found, back, longer, sources.of(run))


def container(cause: Cause) -> str | None:
    """Where leaves came into a container: its path."""
    if cause.kind != "tree" or cause.path is None or cause.before is not None or cause.after is None:
        return None
    return "".join(tokens(cause.path)[:-1]) or None


def groups(run: Run, kinds: tuple[str, ...], *, fast_path: bool = False) -> list[Group]:
    """The misses of the user's functions whose decisive cause is one of ``kinds``.

    Args:
      fast_path: those that needed nothing new, instead of those that traced, lowered or compiled.
    """
    found: dict[tuple[object, ...], list[tuple[Compilation, Cause]]] = {}
    for f in run.functions.values():
        if not f.user:
            continue
        if fast_path:
            told = [(c, causes.of(run, c)[0]) for c in f.compilations if c.reached == ["fast_path"]]
        else:
            told = [pair for kind in kinds for pair in causes.reasons(f, run).get(kind, [])]
        for c, cause in told:
            if cause.kind in kinds:
                where = container(cause)  # of what grows, each call brings another path
                key = (f.id, cause.kind, cause.path if where is None else where, where is None)
                found.setdefault(key, []).append((c, cause))
    return [
        group_of(run, [c for c, _ in members], [cause for _, cause in members]) for members in found.values()
    ]


def recompile_rule(
    code: str, name: str, severity: str, *kinds: str, severity_of: Callable[[Group], str] | None = None
) -> Callable[[Callable[[Group], str | None]], Callable[[Group], str | None]]:
    """``@recompile_rule("JX101", "changing-shape", WARNING, "shape", "rank")`` before a function from a
    group of misses to the fix in one clause, or None where there is nothing to find. ``severity_of``: where it is
    less for some groups."""

    def decorate(advise: Callable[[Group], str | None]) -> Callable[[Group], str | None]:
        def check(run: Run) -> Iterator[Finding]:
            found = [(group, fix) for group in groups(run, kinds) if (fix := advise(group)) is not None]
            met = {id(misses := _misses(group)): (group, fix, misses) for group, fix in found}
            # Without steps two loops that end in odd batches cannot be told from one.
            apart = [m for _, _, m in met.values() if any(x.step is None for x in m)]
            near = [m for _, _, m in met.values() if not any(x.step is None for x in m)]
            for change in (*resized.together(run, near), *(Change(m, []) for m in apart)):
                group, fix, _ = met[id(change.group)]
                weight = severity_of(group) if severity_of else severity
                yield finding(run, code, weight, group, fix, also=change)

        registry.add(code, name, severity, check, recompiles=True)
        for kind in kinds:
            _ADVICE.setdefault(kind, []).append(advise)
        return advise

    return decorate


def _misses(group: Group) -> list[Miss]:
    return [Miss(c, c.step, cause) for c, cause in zip(group.compilations, group.causes, strict=True)]


def finding(
    run: Run,
    code: str,
    severity: str,
    group: Group,
    fix: str,
    what: str | None = None,
    also: Change | None = None,
) -> Finding:
    """One finding for a group; ``what`` in place of "recompiled 3 times"; ``also``: with others of its change of size."""
    n = len(group.compilations)
    times = "once more" if n == 1 else f"{n:,} times more"
    done = what or f"{_verb(group)} {times}"
    repeated = "; most recently " if len({c.text for c in group.causes}) > 1 else ": "
    last = group.compilations[-1]
    why = f"{group.cause.text}{_than(run, last)}{resized.also(also) if also is not None else ''}"
    return Finding(
        code=code,
        severity=severity if severity == NOTE or group.cause.kind != "unknown" else NOTE,
        certainty=CERTAIN if all(c.certainty == CERTAIN for c in group.causes) else LIKELY,
        title=f"{group.name} was {done}{repeated}{why}",
        function=group.function.id,
        source=last.site,
        evidence=[
            Evidence(_told(run, c, cause), compilation=c.id, source=c.site, step=c.step)
            for c, cause in list(zip(group.compilations, group.causes, strict=True))[-EVIDENCE:]
        ]
        + [e for _, e in (resized.evidence(run, also) if also is not None else [])]
        + _maker(last, group.cause),
        fix=fix + _too(run, group),
        seconds=group.seconds if also is None else also.seconds,
        path=group.cause.path,
    )


def _maker(c: Compilation, cause: Cause) -> list[Evidence]:
    """The line that made the array which is to blame, where that is another line than the call's."""
    made = c.made_at(cause.path) if cause.kind in OF_AN_ARRAY and cause.path else None
    if made is None or c.site is None or (made.file, made.line) == (c.site.file, c.site.line):
        return []
    return [Evidence(f"{cause.path} was made there", compilation=c.id, source=made, step=c.step)]


def _too(run: Run, group: Group) -> str:
    """What the fix alone leaves to be compiled again: ``; the same goes for ys``, which changed alike in all of them,
    `` (xs changed dtype in 2 of these, too)``; or nothing."""
    found: Counter[tuple[str, str]] = Counter()
    alike = CHANGED.get(group.cause.kind)
    for c in group.compilations:
        decisive, *others = causes.of(run, c)
        if decisive.kind in FOLLOWED:
            continue
        said = {(decisive.path, CHANGED.get(decisive.kind)), (decisive.path, CHANGED["weak_type"])}
        if decisive.kind == "tree":  # the advice is about all containers
            others = [o for o in others if o.kind != "tree"]
        if group.lengthened and decisive.path:  # and here about the whole argument
            others = [o for o in others if not o.path or root(o.path) != root(decisive.path)]
        found.update(
            {
                (o.path, CHANGED[o.kind])
                for o in others
                if o.path and o.kind in CHANGED and LEVELS.index(o.level) <= LEVELS.index(decisive.level)
            }
            - said
        )
    if not found:
        return ""
    n = len(group.compilations)
    same = [path for (path, what), times in found.items() if what == alike and times == n]
    if len(same) == len(found) and group.cause.path != "context":
        more = f" and {len(same) - TOO:,} more" if len(same) > TOO else ""
        return f"; the same goes for {', '.join(same[:TOO])}{more}"
    told = []
    for (path, what), times in found.most_common(TOO):
        which = ("this one" if n == 1 else "these") if times == n else f"{times:,} of these"
        told.append(f"{path} {what} in {which}")
    more = f", and {len(found) - TOO:,} more" if len(found) > TOO else ""
    return f" ({', '.join(told)}{more}, too)"


def _verb(group: Group) -> str:
    level = group.cause.level
    return {"trace": "traced and compiled", "lower": "lowered and compiled"}.get(level, "compiled")


def _told(run: Run, c: Compilation, cause: Cause) -> str:
    n = number_of(run, c)
    step = f" at step {c.step}" if c.step is not None else ""
    return (f"#{n}" if n else "a call") + step + f": {cause.text}{_than(run, c)}"


def _than(run: Run, c: Compilation) -> str:
    """Which earlier compilation "before" is, where it is not the latest."""
    number = causes.further_back(run, c)
    return f" (compared with #{number}, the nearest)" if number is not None else ""
