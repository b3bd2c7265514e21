"""A program of a run beside the one of the baseline that it is now: by its arguments, else in order; and how a
difference between the two is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from jaxscope.model.baseline import facts
from jaxscope.model.baseline.recorded import Entry, Made
from jaxscope.model.records import Function
from jaxscope.schema.findings import CERTAIN, ERROR, NOTE, Evidence, Finding
from jaxscope.schema.keys import Frame

REFRESH = "jaxscope check --update-baseline"
ACCEPT = f"where it is meant: {REFRESH}"
SHOWN = 5


class Pair(NamedTuple):
    """One program, then and now. ``label``: how it is called; ``why``: which of its arguments differ."""

    old: facts.Program
    made: Made
    entry: Entry
    label: str
    why: list[str]

    @property
    def new(self) -> facts.Program:
        return self.made.facts

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


def pairs(old: facts.Function, entry: Entry) -> Iterator[Pair]:
    """Programs of the same arguments belong together, the others in the order of compilation."""
    left = list(old.programs)
    rest: list[Made] = []
    pairs: list[tuple[facts.Program, Made]] = []
    for made in entry.programs:
        same = next((p for p in left if p.arguments == made.facts.arguments), None)
        if same is None:
            rest.append(made)
        else:
            left = [p for p in left if p is not same]
            pairs.append((same, made))
    pairs += zip(left, rest, strict=False)
    numbers = {id(m): n for n, m in enumerate(entry.programs, 1)}
    name = name_of(entry.function)
    for before, made in sorted(pairs, key=lambda p: numbers[id(p[1])]):
        label = name if len(entry.programs) == 1 else f"program {numbers[id(made)]} of {name}"
        yield Pair(before, made, entry, label, _arguments(before.arguments, made.facts.arguments))


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
