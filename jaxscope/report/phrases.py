"""Word file places, functions, causes and commands, for all reports.

Every text is one line, escaped, without colours or layout.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath

from jaxscope.model import causes
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.present.causes import clause
from jaxscope.present.figures import count
from jaxscope.report.escape import escape
from jaxscope.schema.causes import Cause
from jaxscope.schema.findings import CERTAIN
from jaxscope.schema.keys import Frame

TEXT = 400  # characters of one cause


_CAUSES = {
    "aot": "ahead-of-time compilation",
    "cleared": "cleared cache",
    "config": "setting change",
    "effects": "effect change",
    "equal_sharding": "sharding change",
    "evicted": "cache eviction",
    "first": "first compilation",
    "new_function": "new function object",
    "options": "jit option change",
    "prng": "random key type change",
    "static_identity": "new static object",
    "tree": "tree structure change",
    "unknown": "unknown cause",
}


def cause_count(kind: str, n: int) -> str:
    """Return ``2 shape changes``, ``1 new function object``: how often recompiles had a cause of this kind."""
    return count(n, _CAUSES.get(kind) or f"{escape(kind.replace('_', ' '), 40)} change")


def in_vain(packages: Iterable[str]) -> str:
    """Explain the errors that JAX prints about an accelerator this machine lacks, and how to avoid them."""
    named = " and ".join("libtpu" if name == "libtpu" else name.replace("_", "-") for name in packages)
    verb = "are" if " and " in named else "is"
    return (
        f"{named} {verb} installed, but this machine has no such accelerator: the errors that JAX prints about it "
        "at startup are harmless; JAX_PLATFORMS=cpu in the environment avoids them"
    )


class Places:
    """Shorten file names: to the last part where no other file of the run has the same.

    ``whole`` keeps the path relative to the program's working directory, so that the file can be opened.
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
        if "site-packages" in path.parts:  # the rest names the library
            at = len(path.parts) - 1 - path.parts[::-1].index("site-packages")
            return escape("/".join(path.parts[at + 1 :]))
        return escape(name)

    def frame(self, frame: Frame | None) -> str | None:
        """Return ``train.py:88``; None if the line is unknown."""
        return None if frame is None else f"{self.file(frame.file)}:{frame.line}"

    def function(self, f: Function) -> str | None:
        if not f.seen.file:
            return None
        return self.file(f.seen.file) + (f":{f.seen.line}" if f.seen.line is not None else "")


def function_name(f: Function) -> str:
    """Return the displayed name: ``Trainer.step``, ``main.loss`` for a function defined inside main."""
    return escape(f.name.replace(".<locals>", ""), 100)


def why(run: Run, c: Compilation) -> list[str]:
    """Return the causes of ``c`` in words, the decisive one first, at least one."""
    return [cause(found) for found in causes.of(run, c)]


def cause(c: Cause) -> str:
    """Return one cause as a clause; a likely one begins with "it seems that"."""
    text = escape(clause(c), TEXT)
    return text if c.certainty == CERTAIN else f"it seems that {text}"


def first_and_more(lines: Sequence[str], limit: int) -> list[str]:
    """Return at most ``limit`` lines; the last counts those left out."""
    if len(lines) <= limit:
        return list(lines)
    return [*lines[: limit - 1], f"and {len(lines) - limit + 1} more causes"]


def command(argv: Sequence[str]) -> str:
    """Return the user's command without the interpreter: ``train.py --epochs 3``, ``-m pkg.train``."""
    words = list(argv)
    if words and PurePath(words[0]).name.startswith(("python", "pypy")):
        words = words[1:]
        while words and words[0].startswith("-") and words[0][:2] not in ("-m", "-c") and words[0] != "-":
            takes_value = words[0] in ("-X", "-W", "--check-hash-based-pycs")
            words = words[2:] if takes_value else words[1:]
    if words and words[0] == "-c":
        words = ["-c", "…", *words[2:]]
    return escape(" ".join(words), 200)


WITH_INPUT = "use jaxscope run --no-tui, then the program reads from this terminal"


def wanted_input(text: str) -> bool:
    """Return whether this output ends with the error of a program that read from an empty standard input."""
    return "EOFError: EOF when reading a line" in text
