"""A program of a run beside the one of the baseline that it is now, by its arguments; and how a difference between the
two is told.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from jaxscope.check.baseline import schema
from jaxscope.check.baseline.extract import Entry, Made
from jaxscope.model.records import Function
from jaxscope.schema.findings import CERTAIN, ERROR, NOTE, Evidence, Finding
from jaxscope.schema.keys import Frame

REFRESH = "jaxscope check --update-baseline"
ACCEPT = f"where it is meant: {REFRESH}"
SHOWN = 5
_SHAPE = re.compile(r"\w+(\[[^\]]*\])")  # of bf16[64,32] P('data',)


class Pair(NamedTuple):
    """One program, then and now. ``label``: how it is called; ``why``: which of its arguments differ."""

    old: schema.Program
    made: Made
    entry: Entry
    label: str
    why: list[str]

    @property
    def new(self) -> schema.Program:
        return self.made.facts

    @property
    def resized(self) -> bool:
        """Have its arguments other shapes: is it larger or smaller than it was, rather than worse or better?"""
        return not _same_shapes(self.old.arguments, self.new.arguments) and bool(self.why)

    def finding(
        self, code: str, title: str, source: Frame | None, evidence: Iterable[str], fix: str
    ) -> Finding:
        f = self.entry.function
        last = self.made.program.compilations[-1] if self.made.program.compilations else None
        because = f": {self.why[0]}" if self.why else ""
        source = source or definition(f) or (last.site if last is not None else None)
        texts = [*evidence, *self.why[:SHOWN]]
        return Finding(
            code=code,
            severity=ERROR,
            certainty=CERTAIN,
            title=f"{self.label}: {title}{because}",
            function=f.id,
            source=source,
            evidence=[
                Evidence(
                    text,
                    compilation=last.id if last is not None else None,
                    program=self.made.program.id,
                    source=source,
                )
                for text in texts[: 2 * SHOWN]
            ],
            fix=f"{fix}; {ACCEPT}",
        )  # fmt: skip


def name_of(f: Function) -> str:
    return f.name.replace(".<locals>", "")


def definition(f: Function) -> Frame | None:
    """The line at which ``f`` stands."""
    seen = f.seen
    return Frame(seen.file, seen.line, seen.qualname) if seen.file and seen.line is not None else None


def pairs(old: schema.Function, entry: Entry) -> tuple[list[Pair], list[Pair]]:
    """The programs of ``entry`` with those of the baseline that they are now; and those that have no counterpart,
    each beside one of the baseline that none of this run is.

    Programs of the same arguments belong together, then those whose arguments have the same shapes: another dtype or
    sharding is a change of that program, another batch size makes another one. Where there is one program then and one
    now, it is that one whatever changed.
    """
    left, rest = list(old.programs), list(entry.programs)
    found: list[tuple[schema.Program, Made]] = []
    for alike in (
        lambda a, b: a.arguments == b.arguments,
        lambda a, b: _same_shapes(a.arguments, b.arguments),
    ):
        for made in list(rest):
            same = next((p for p in left if alike(p, made.facts)), None)
            if same is not None:
                left = [p for p in left if p is not same]
                rest = [m for m in rest if m is not made]
                found.append((same, made))
    alone = list(zip(left, rest, strict=False))
    if len(old.programs) == len(entry.programs) == 1:
        found, alone = found + alone, []
    numbers = {id(m): n for n, m in enumerate(entry.programs, 1)}
    name = name_of(entry.function)

    def beside(several: list[tuple[schema.Program, Made]]) -> list[Pair]:
        return [
            Pair(
                before,
                made,
                entry,
                name if len(entry.programs) == 1 else f"program {numbers[id(made)]} of {name}",
                _arguments(before.arguments, made.facts.arguments),
            )
            for before, made in sorted(several, key=lambda p: numbers[id(p[1])])
        ]

    return beside(found), beside(alone)


def _same_shapes(before: Mapping[str, int], after: Mapping[str, int]) -> bool:
    """Have the arguments that both take the same shapes? How many a container holds is another matter."""
    old, new = _shapes(before), _shapes(after)
    both = old.keys() & new.keys()
    return bool(both) and all(old[path] == new[path] for path in both)


def _shapes(arguments: Mapping[str, int]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for text in arguments:
        path, _, value = text.rpartition(": ")
        shape = _SHAPE.match(value)
        found.setdefault(path, set()).add(shape[1] if shape is not None else value)
    return found


def _arguments(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    """``batch['x'] is now f32[96,32], before f32[64,32]``."""
    came = Counter(dict(after)) - Counter(dict(before))
    gone = Counter(dict(before)) - Counter(dict(after))
    was: dict[str, list[str]] = {}
    for text in gone:
        path, _, value = text.rpartition(": ")
        was.setdefault(path, []).append(value)
    found = []
    for text in came:
        path, _, value = text.rpartition(": ")
        earlier = was.get(path)
        if earlier:
            found.append(f"{path} is now {value}, before {earlier.pop(0)}")
        else:
            found.append(f"{path} is new ({value})")
    found += [f"{path} is gone ({value})" for path, values in was.items() for value in values]
    return found


def note(code: str, text: str, fix: str, entry: Entry | None = None) -> Finding:
    """What does not fail by itself."""
    source = definition(entry.function) if entry is not None else None
    return Finding(
        code=code,
        severity=NOTE,
        certainty=CERTAIN,
        title=text,
        function=entry.function.id if entry is not None else None,
        source=source,
        evidence=[Evidence(text, source=source)],
        fix=fix,
    )
