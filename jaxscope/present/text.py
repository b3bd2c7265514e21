"""Write single facts as text: bytes, seconds, counts, lists, file places, functions and commands.

``Places``, ``function_name``, ``wrapper_name`` and ``command`` escape the names that come from the user's
program.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from jaxscope.model.records import Function
from jaxscope.model.run import Run
from jaxscope.present.escape import escape
from jaxscope.schema.keys import Frame

_CELL = re.compile(r"In\[\d+\]")  # a cell of a notebook


def seconds(value: float | None) -> str:
    """Return a time in seconds as text: ``28.1 s``, ``41 ms``, ``2 min 14 s``; ``?`` if it is None or not
    finite."""
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


def short_seconds(value: float) -> str:
    """Return a time in seconds as text, below 10 ms with more digits than ``seconds``: ``41 ms``, ``4.1 ms``,
    ``412 µs``."""
    if not 0 < value < 0.00995:
        return seconds(value)
    if value >= 0.0009995:
        return f"{value * 1e3:.1f} ms"
    micro = value * 1e6
    return f"{micro:.0f} µs" if micro >= 9.95 else f"{micro:.1f} µs" if micro >= 0.05 else "<0.1 µs"


def count(n: float, one: str, many: str | None = None) -> str:
    """Return the number ``n`` with its noun: ``1 trace``, ``1,200 traces``. A float gets three digits: ``2.53
    steps``. ``one`` is the noun in the singular, ``many`` in the plural; None: ``one`` with an s."""
    number = f"{n:,}" if isinstance(n, int) else f"{n:.3g}"
    return f"{number} {one if number == '1' else many or one + 's'}"


def size(n: float | None) -> str:
    """Return a number of bytes as text: ``812 B``, ``3.4 MiB``; ``?`` for None."""
    if n is None:
        return "?"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if n < 1024 or unit == "TiB":
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024
    raise AssertionError


def listed(names: Sequence[str], most: int | None = None, things: str = "") -> str:
    """Return names as one text: ``a, b and c``; with more than ``most`` of them: ``a, b and 4 more``. Empty
    if there are no names.

    ``things`` is the noun after that number, in the plural: ``a, b and 4 more lines``, ``a, b and 1 more
    line``.
    """
    shown = list(names if most is None else names[:most])
    if len(names) > len(shown):
        left = len(names) - len(shown)
        noun = things if left > 1 else things.removesuffix("s")
        shown.append(f"{left:,} more {noun}".rstrip())
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else ""


def line(frame: Frame) -> str:
    """Return the file name and line number of ``frame``: ``train.py:12``, or ``In[3], line 12`` for a cell of
    a notebook."""
    return numbered(PurePath(frame.file).name, frame.line)


def numbered(file: str, line: int) -> str:
    """Return a file and a line number as ``train.py:12``, or ``In[3], line 12`` for a cell of a notebook."""
    return f"{file}, line {line}" if _CELL.fullmatch(file) else f"{file}:{line}"


def article(noun: str) -> str:
    """Return a noun with its article: ``an int``, ``a list``; ``?`` is returned unchanged."""
    return noun if noun == "?" else f"{'an' if noun[:1] in 'aeiouAEIOU' else 'a'} {noun}"


def brief(text: str, room: int) -> str:
    """Return ``text``, cut to ``room`` characters with ``…`` at its end if it is longer."""
    return text if len(text) <= room else text[: room - 1] + "…"


class Places:
    """Writes lines of code as text with short file names: only the last part of the path (``train.py``). If
    two files of the run have the same last part, it writes their paths, relative to the program's working
    directory if they are in it. The path of a file in an installed package begins with the package
    (``optax/losses/_classification.py``).

    Args:
      whole: write every path, relative to the working directory or to site-packages if the file is there.
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
        """Return the escaped name of the file with the path ``name``, shortened as the class says."""
        path = PurePath(name)
        installed = "site-packages" in path.parts
        unique = self._shared is not None and path.name not in self._shared
        if unique and path.is_absolute() and not installed:
            return escape(path.name)
        if self._cwd is not None and path.is_absolute():
            try:
                return escape(str(path.relative_to(self._cwd)))
            except ValueError:
                pass
        if installed:  # the rest names the library
            at = len(path.parts) - 1 - path.parts[::-1].index("site-packages")
            return escape("/".join(path.parts[at + 1 :]))
        return escape(name)

    def frame(self, frame: Frame | None) -> str | None:
        """Return the line of ``frame`` as ``train.py:88``; None if ``frame`` is None."""
        return None if frame is None else numbered(self.file(frame.file), frame.line)

    def inside(self, frame: Frame | None) -> str | None:
        """Return the line of ``frame`` and its function as ``train.py:88 in main``; None if ``frame`` is
        None."""
        return None if frame is None else f"{self.frame(frame)} in {escape(frame.function, 80)}"

    def function(self, f: Function) -> str | None:
        """Return where the function ``f`` is defined: ``train.py:12``; ``train.py`` if the line is unknown,
        and None if the file is unknown."""
        if not f.seen.file:
            return None
        file = self.file(f.seen.file)
        return file if f.seen.line is None else numbered(file, f.seen.line)


def function_name(f: Function) -> str:
    """Return the escaped name of a function for display: ``Trainer.step``; ``main.loss`` if main defines
    it."""
    return escape(f.display_name, 100)


def wrapper_name(wrapper: str) -> str:
    """Return the escaped name by which users know the function transformation ``wrapper``: ``jax.jit`` for
    ``jaxlib.PjitFunction`` (the class of ``jax.jit(f)``). Other names are only escaped."""
    return escape("jax.jit" if wrapper == "jaxlib.PjitFunction" else wrapper)


def missing_accelerators(packages: Iterable[str]) -> str:
    """Return a text that says why JAX prints errors about an accelerator that this machine lacks, and how to
    avoid them. ``packages`` are the installed packages for that accelerator: ``libtpu``."""
    named = " and ".join(name.replace("_", "-") for name in packages)
    verb = "are" if " and " in named else "is"
    return (
        f"{named} {verb} installed, but this machine has no such accelerator:"
        f" the errors that JAX prints about it "
        "at startup are harmless; JAX_PLATFORMS=cpu in the environment avoids them"
    )


def command(argv: Sequence[str]) -> str:
    """Return the escaped command of the user without the interpreter and its options: ``train.py --epochs
    3``, ``-m pkg.train``. The code after ``-c`` is replaced by ``…``."""
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
    """Return whether the output ``text`` has the error of a program that read an empty standard input."""
    return "EOFError: EOF when reading a line" in text
