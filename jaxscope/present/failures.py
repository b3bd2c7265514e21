"""Write why a program failed: its exception, arrays that it had donated, the memory that it needed and that
was in use."""

from __future__ import annotations

from jaxscope.analysis import removed_names
from jaxscope.model import deaths
from jaxscope.model.arrays import Snapshot
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.present.arrays import total
from jaxscope.present.programs import memory_of, memory_parts, peak_bytes_of
from jaxscope.present.spans import Span
from jaxscope.present.text import Places, brief, count, function_name, size
from jaxscope.schema.events import COMPILE, Died
from jaxscope.schema.keys import Frame


def uncaught(died: Died) -> list[Span]:
    """Return the exception ``died``, which ended the program, as ``Uncaught ValueError: first line of the
    message``."""
    message = died.message.strip().partition("\n")[0]
    return [(f"Uncaught {brief(died.error, 80)}", "error"), f": {brief(message, 300)}" if message else ""]


def removed(run: Run) -> list[Span]:
    """Return a text about the name or argument of JAX that made the program fail because of the JAX version:
    ``jax.tree_map was removed in JAX 0.6.0: write jax.tree.map``. Empty if there is none."""
    found, died = deaths.removed_name(run), run.main.died if run.main is not None else None
    if found is None or died is None:
        return []
    if found.deprecated:
        what: list[Span] = [
            (found.name, "name"),
            f" sets no mesh for this call (deprecated in JAX {found.version})",
        ]
    elif found.version == removed_names.NEVER:
        what = ["JAX has no ", (found.name, "name")]
    else:
        what = [(found.name, "name"), f" was removed in JAX {found.version}"]
    if died.library and not found.deprecated:
        return [*what, f": {brief(died.library, 80)} uses it; install a newer {brief(died.library, 80)}"]
    return [*what, *([": write ", (found.instead, "good")] if found.instead else ["; nothing replaces it"])]


def donations(run: Run, message: str, places: Places) -> list[list[Span]]:
    """Return a line for each donated argument that may be the deleted array of the error ``message``: at most
    three, the latest call first. ``places`` shortens file names."""
    lines: list[list[Span]] = []
    for c, path in deaths.donors(run, message):
        site = places.frame(c.site)
        lines.append(
            [
                (function_name(c.function), "name"),
                f" donates {brief(path, 80)}, {deaths.aval(c, path)}",
                (f"  ({site})" if site else "", "path"),
                ": use its result instead, or do not donate it",
            ]
        )
    return lines


def alive(snapshot: Snapshot) -> list[Span]:
    """Return number and bytes of the arrays in ``snapshot``: ``Live arrays at that time: 12 arrays, 3.4
    GiB``."""
    return [("Live arrays at that time: ", "dim"), f"{count(snapshot.count, 'array')}, {total(snapshot)}"]


def memory_needed(run: Run, site: Frame | None) -> list[list[Span]]:
    """Return one line about the program that ran out of memory, as far as it is known: its name, and the
    memory that it needs on each device. Empty if no program of the main process is known.

    The program is the one that the error names, else the one that was compiled last at the user's line
    ``site``, else the largest of the run. If the last compilation at ``site`` failed, the line says so, and
    has the memory of the function's previous compilation, if there is one.
    """
    at = None if site is None else (site.file, site.line)

    def here(c: Compilation) -> bool:
        return c.site is not None and (c.site.file, c.site.line) == at

    of_main = [c for c in run.compilations.values() if c.process is run.main]
    compiled = [c for c in of_main if memory_of(c) is not None]
    if named := [c for c in compiled if deaths.without_memory(c)]:
        return [_needs(max(named, key=_peak), " ran out of memory; it needs")]
    failed = [c for c in of_main if c.failed is not None and c.failed.phase == COMPILE and here(c)]
    last = max(filter(here, compiled), key=lambda c: c.t_ns, default=None)
    broken = max(failed, key=lambda c: c.t_ns, default=None)
    which = " (compiled last at this line) needs"
    if broken is not None and (last is None or last.t_ns < broken.t_ns):
        before = [c for c in compiled if c.function is broken.function and c.t_ns < broken.t_ns]
        last = max(before, key=lambda c: c.t_ns, default=None)
        which = " was being compiled and has not run" + (
            "; its previous compilation needs" if last is not None else ""
        )
        if last is None:
            return [[(function_name(broken.function), "name"), which]]
    elif last is None:
        which = ", the largest program of the run, needs"
        last = max(compiled, key=_peak, default=None)
    return [_needs(last, which)] if last is not None else []


def _needs(c: Compilation, words: str) -> list[Span]:
    """Return a line about the memory that the program of ``c`` needs: ``step needs on each device: arguments
    1.2 GiB, ...``. ``words`` follows the function's name and has the verb: ``" needs"``."""
    memory = memory_of(c)
    parts = ", ".join(f"{name} {size(n)}" for name, n in memory_parts(memory)) if memory is not None else "?"
    return [(function_name(c.function), "name"), f"{words} on each device: {parts}"]


def _peak(c: Compilation) -> int:
    """Return the peak memory of the program that ``c`` compiled, in bytes on one device; 0 if unknown."""
    return peak_bytes_of(c) or 0
