"""The wording shared by all reports: durations, counts, places, and what differs between two keys.

Plain text, one line each, already escaped; no colours, no layout.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import PurePath

from jaxscope.analysis.fold import Folded, fold
from jaxscope.model.compare import compared
from jaxscope.model.names import number_of
from jaxscope.model.records import Comparison, Compilation, Function
from jaxscope.model.run import Run
from jaxscope.report.escape import escape
from jaxscope.schema.keys import Frame

ARROW = "→"
VALUE = 160  # characters of one value in a line

_WHOLE = {"tree": "argument tree", "call_form": "call form", "context": "settings"}


def seconds(value: float | None) -> str:
    """``28.1 s``, ``41 ms``, ``2 min 14 s``; ``?`` where it is not known."""
    if value is None or not math.isfinite(value):
        return "?"
    if value < 0.0005:
        return "0 s" if value <= 0 else "<1 ms"
    if value < 0.0995:
        return f"{value * 1e3:.0f} ms"
    if value < 9.95:
        return f"{value:.2f} s" if value < 0.995 else f"{value:.1f} s"
    if value < 119.5:
        return f"{value:.1f} s" if value < 99.95 else f"{value:.0f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 120:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min"


def count(n: int, one: str, many: str | None = None) -> str:
    """``1 trace``, ``2 traces``."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def size(n: float) -> str:
    """Bytes: ``812 B``, ``3.4 MiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024
    raise AssertionError


class Places:
    """File names as short as they stay clear: the last part where no other file of the run has it.

    ``whole`` keeps the way from where the program ran, for eyes that want to open the file.
    """

    def __init__(self, run: Run, *, whole: bool = False) -> None:
        main = run.main
        cwd = main.started.cwd if main is not None and main.started is not None else ""
        self._cwd = PurePath(cwd) if cwd else None
        self._shared: set[str] | None = None
        if not whole:
            files = {f.seen.file for f in run.functions.values()} | {
                c.site.file for c in run.compilations.values() if c.site
            }
            known: set[str] = set()
            self._shared = set()
            for name in (PurePath(file).name for file in files if file):
                (self._shared if name in known else known).add(name)

    def file(self, name: str) -> str:
        path = PurePath(name)
        if self._shared is not None and path.is_absolute() and path.name not in self._shared:
            return escape(path.name)
        if self._cwd is not None and path.is_absolute():
            try:
                return escape(str(path.relative_to(self._cwd)))
            except ValueError:
                pass
        if "site-packages" in path.parts:  # the rest says which library
            at = len(path.parts) - 1 - path.parts[::-1].index("site-packages")
            return escape("/".join(path.parts[at + 1 :]))
        return escape(name)

    def frame(self, frame: Frame | None) -> str | None:
        """``train.py:88``; None where the line is not known."""
        return None if frame is None else f"{self.file(frame.file)}:{frame.line}"

    def function(self, f: Function) -> str | None:
        if not f.seen.file:
            return None
        return self.file(f.seen.file) + (f":{f.seen.line}" if f.seen.line is not None else "")


def function_name(f: Function) -> str:
    """The name people see: ``Trainer.step``, ``main.loss`` for a function defined inside main."""
    return escape(f.name.replace(".<locals>", ""), 100)


def change(line: Folded, *, repeated: bool = False) -> str:
    """One folded difference as a sentence; ``repeated``: it stands for several of its kind."""
    before, after = (None if v is None else escape(v, VALUE) for v in (line.before, line.after))
    lately = "most recently " if repeated else ""
    absent = "not set" if line.field.startswith(("options.", "context.")) else "nothing"
    arrow = f"{lately}{absent if before is None else before} {ARROW} {absent if after is None else after}"
    if line.count > 1:
        where = count(line.count, "leaf", "leaves") + (f" under {escape(line.path)}" if line.path else "")
        if line.field == "leaf":
            return f"{where}: " + ("only in this call" if line.before is None else "no longer there")
        return f"{where}: {_label(line.field)} {arrow}"
    if line.path is None:
        if line.field == "function_object":
            return f"another function object{' each time' if repeated else ''}, from the same definition"
        group, _, name = line.field.partition(".")
        if name:
            return f"{ {'options': 'jit option', 'context': 'setting'}.get(group, group) } {escape(name)}: {arrow}"
        return f"{_WHOLE.get(line.field, escape(line.field))}: {arrow}"
    path = escape(line.path)
    if line.field == "leaf":
        return (
            f"{path}: {after}, not there before"
            if before is None
            else f"{path}: no longer there (was {before})"
        )
    if line.field == "static":
        return f"{path} (static): {arrow}"
    if line.field == "aval":
        return f"{path}: {arrow}"
    return f"{path}: {_label(line.field)} {arrow}"


def _label(field: str) -> str:
    return escape(field.replace("_", " "))


def changes(comparison: Comparison, *, repeated: bool = False) -> list[str]:
    """What differs from the nearest key, a line each. Empty: nothing that was recorded."""
    assert comparison.nearest_facts is not None
    return [
        change(line, repeated=repeated)
        for line in fold(comparison.differences, comparison.nearest_facts, comparison.facts)
    ]


def nothing_differs(run: Run, nearest: Compilation) -> str:
    n = number_of(run, nearest)
    return f"the key is the same as {f'that of #{n}' if n else 'of an earlier call'}: nothing that was recorded differs"


def why(run: Run, c: Compilation, *, repeated: bool = False) -> list[str]:
    """What there is to say about ``c`` beside its nearest key, one line each, at least one."""
    comparison = compared(run, c)
    if comparison is None:
        return ["its cache key was not recorded"]
    if comparison.nearest is None:
        return ["no earlier key of this function was recorded"]
    return changes(comparison, repeated=repeated) or [nothing_differs(run, comparison.nearest)]


def first_and_more(lines: Sequence[str], limit: int) -> list[str]:
    """At most ``limit`` lines, the last saying how many are left."""
    if len(lines) <= limit:
        return list(lines)
    return [*lines[: limit - 1], f"and {len(lines) - limit + 1} more differences"]


def command(argv: Sequence[str]) -> str:
    """The user's command without the interpreter: ``train.py --epochs 3``, ``-m pkg.train``."""
    words = list(argv)
    if words and PurePath(words[0]).name.startswith(("python", "pypy")):
        words = words[1:]
        while words and words[0].startswith("-") and words[0][:2] not in ("-m", "-c") and words[0] != "-":
            takes_value = words[0] in ("-X", "-W", "--check-hash-based-pycs")
            words = words[2:] if takes_value else words[1:]
    if words and words[0] == "-c":
        words = ["-c", "…", *words[2:]]
    return escape(" ".join(words), 200)
