"""Decide which program of a function in a run is compared with which program in a baseline, by the shapes,
dtypes and shardings of their arguments."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from jaxscope.check.baseline import schema
from jaxscope.check.baseline.extract import FunctionEntry, ProgramEntry
from jaxscope.model.metrics import ProgramMetrics, SavedMetrics
from jaxscope.model.records import Function
from jaxscope.schema.findings import CERTAIN, ERROR, NOTE, Evidence, Finding
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Message, Words, message

REFRESH, ACCEPT = message("fix-update-baseline"), message("fix-accept")
SHOWN = 5  # items that are listed in a finding
_SHAPE = re.compile(r"\w+(\[[^\]]*\])")  # the shape in bf16[64,32] P('data',)


class ArgumentChange(NamedTuple):
    """An argument that differs between a program in the baseline and its counterpart in the run.

    Attributes:
      path: the argument: ``batch['x']``. Numbers in it are ``*``, so it may stand for several arguments.
      before, after: its dtype, shape and sharding (``f32[64,32] P('data',)``) in the baseline and in the run;
        None: this program has fewer arguments with this path.
    """

    path: str
    before: str | None
    after: str | None

    @property
    def words(self) -> Message:
        """Return the change as a message: ``batch['x'] changed from f32[64] to f32[32]``."""
        if self.before is None:
            return message("argument-new", path=self.path, after=self.after)
        if self.after is None:
            return message("argument-removed", path=self.path, before=self.before)
        return message("argument-changed", path=self.path, before=self.before, after=self.after)

    @property
    def advice(self) -> Message:
        """Return advice on how to pass the same argument as in the baseline: ``pass batch['x'] as
        f32[64]``."""
        if self.before is None or self.after is None:
            return message("fix-same-arguments")
        return message("fix-argument-as-before", path=self.path, before=self.before)


class Pair(NamedTuple):
    """A program in the baseline, and the program in the run that is compared with it.

    Attributes:
      old: the figures of the program in the baseline.
      entry: the program in the run.
      function: the function of the run that the program belongs to.
      label: the name of the program in messages.
      changed: the arguments that differ between the two programs.
    """

    old: SavedMetrics
    entry: ProgramEntry
    function: FunctionEntry
    label: Words
    changed: list[ArgumentChange]

    @property
    def new(self) -> ProgramMetrics:
        """Return the figures of the program in the run."""
        return self.entry.metrics

    @property
    def resized(self) -> bool:
        """Return whether an argument that both programs have differs in shape, or the programs have no
        argument in common. If so, larger figures do not mean a worse program. False if all arguments are
        equal."""
        return bool(self.changed) and not _same_shapes(self.old.arguments, self.new.arguments)

    def finding(
        self, code: str, title: Words, source: Frame | None, evidence: Iterable[Words], advice: Words
    ) -> Finding:
        """Return an error about this program. Its evidence also lists the changed arguments, because they may
        be the reason.

        Args:
          code: the code of the finding: ``JX705``.
          title: what became worse.
          source: the responsible line of the user's code; None: the line that defines the function, or if
            that is unknown, the line of the latest call that compiled the program.
          evidence: texts about what was observed.
          advice: what to do.
        """
        compilations = self.entry.program.compilations
        last = compilations[-1] if compilations else None
        f = self.function.function
        source = source or f.defined or (last.site if last is not None else None)
        id, program = last.id if last is not None else None, self.entry.program.id
        texts = [*evidence, *(change.words for change in self.changed[:SHOWN])]
        return Finding(
            code=code,
            severity=ERROR,
            certainty=CERTAIN,
            title=message(
                "baseline-program",
                program=self.label,
                title=title,
                change=message("baseline-change", change=self.changed[0].words) if self.changed else None,
            ),
            function=f.id,
            source=source,
            evidence=[
                Evidence(text, compilation=id, program=program, source=source) for text in texts[: 2 * SHOWN]
            ],
            fix=message("fix-or-accept", fix=advice),
        )


def note(code: str, text: Message, fix: Words, f: Function | None = None, about: str = "") -> Finding:
    """Return a finding with the severity note, which makes a check fail only with ``--strict``.

    Args:
      code: the code of the finding: ``JX710``.
      text: the title of the note.
      fix: what to do.
      f: the function that the note is about; None: no function.
      about: the name of the subject, if this is no function of the run. Notes with different names are not
        merged.
    """
    source = f.defined if f is not None else None
    return Finding(
        code,
        NOTE,
        CERTAIN,
        text,
        f.id if f is not None else None,
        source,
        [Evidence(text, source=source)],
        fix,
        subject=(text.slug, about),
    )


def pairs(old: schema.Function, entry: FunctionEntry) -> tuple[list[Pair], list[Pair]]:
    """Pair the programs of a function in the run with its programs in the baseline. Return (pairs,
    unmatched). ``unmatched`` are programs of the run without a counterpart; each is returned with a remaining
    program of the baseline, to show how their arguments differ. If the run or the baseline has more remaining
    programs than the other, its further ones are omitted.

    Programs with equal arguments are paired first, then programs whose arguments have equal shapes. So a
    program with another dtype or sharding counts as a changed program, but a program with another batch size
    as a different program. A single program in the baseline and a single program in the run are always
    paired.

    Args:
      old: the function in the baseline.
      entry: the function in the run.
    """
    left, rest = list(old.programs), list(entry.programs)
    found: list[tuple[SavedMetrics, ProgramEntry]] = []
    same: Sequence[Callable[[Mapping[str, int], Mapping[str, int]], bool]] = (
        lambda a, b: a == b,
        _same_shapes,
    )
    for alike in same:
        for program in list(rest):
            match = next((p for p in left if alike(p.arguments, program.metrics.arguments)), None)
            if match is not None:
                left = [p for p in left if p is not match]
                rest = [p for p in rest if p is not program]
                found.append((match, program))
    unmatched = list(zip(left, rest, strict=False))
    if len(old.programs) == len(entry.programs) == 1:
        found, unmatched = found + unmatched, []
    numbers = {id(p): n for n, p in enumerate(entry.programs, 1)}
    name = entry.function.display_name

    def paired(several: list[tuple[SavedMetrics, ProgramEntry]]) -> list[Pair]:
        found = []
        for before, program in sorted(several, key=lambda p: numbers[id(p[1])]):
            label = (
                name
                if len(entry.programs) == 1
                else message("program-number", n=numbers[id(program)], name=name)
            )
            changed = _changed(before.arguments, program.metrics.arguments)
            found.append(Pair(before, program, entry, label, changed))
        return found

    return paired(found), paired(unmatched)


def _same_shapes(before: Mapping[str, int], after: Mapping[str, int]) -> bool:
    """Return whether the arguments that occur in both programs have the same shapes; False if none occurs in
    both. ``before`` and ``after`` have arguments as keys: ``batch['x']: f32[64,32] P('data',)``. Their values
    are not used."""
    old, new = _shapes(before), _shapes(after)
    both = old.keys() & new.keys()
    return bool(both) and all(old[path] == new[path] for path in both)


def _shapes(arguments: Mapping[str, int]) -> dict[str, set[str]]:
    """Return argument -> its shapes: ``{"batch['x']: f32[64,32] P('data',)": 1}`` -> ``{"batch['x']":
    {"[64,32]"}}``. A text without a shape is taken as it is."""
    found: dict[str, set[str]] = {}
    for text in arguments:
        path, _, value = text.rpartition(": ")
        shape = _SHAPE.match(value)
        found.setdefault(path, set()).add(shape[1] if shape is not None else value)
    return found


def _changed(before: Mapping[str, int], after: Mapping[str, int]) -> list[ArgumentChange]:
    """Return the arguments that differ between two programs: changed and new ones, then removed ones.
    ``before`` and ``after`` are the arguments of the programs, as text -> how often it occurs."""
    added = Counter(dict(after)) - Counter(dict(before))
    removed: dict[str, list[str]] = {}
    for text in Counter(dict(before)) - Counter(dict(after)):
        path, _, value = text.rpartition(": ")
        removed.setdefault(path, []).append(value)
    found = []
    for text in added:
        path, _, value = text.rpartition(": ")
        earlier = removed.get(path)
        found.append(ArgumentChange(path, earlier.pop(0) if earlier else None, value))
    return found + [ArgumentChange(path, value, None) for path, values in removed.items() for value in values]
