"""Format why a program failed: its exception and its stack, and after an out-of-memory error the memory that
was needed and the arrays that were alive."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaxscope.model import arrays as model
from jaxscope.model.run import Run
from jaxscope.present.failures import alive, donations, memory_needed, removed, uncaught
from jaxscope.present.runs import ending
from jaxscope.present.text import WITH_INPUT, Places, size, wanted_input
from jaxscope.tui.cells import Part

FRAMES = 3
LAST = 4  # lines at the end of the output in which the error is looked for
HOLDING = 4  # largest groups of arrays that are shown
WORDS = 400  # characters of a message
_ERROR = re.compile(r"[\w.]+(?:Error|Exception|Interrupt|Exit|Warning)\b|[\w.]+: ")

Lines = list[list[Part]]


def why(run: Run, output: Sequence[str], places: Places, *, brief: bool = False) -> Lines:
    """Return lines with the error that ended the program, its stack and its cause; empty if the program did
    not fail.

    Args:
      output: the last lines that the program printed. They are used if the error was not recorded.
      places: shortens file names.
      brief: show only the innermost frame and the total of the live arrays, if the error was recorded.
    """
    main = run.main
    died = main.died if main is not None else None
    ended_badly = run.exited is not None and (run.exited.exit_code or run.exited.signal is not None)
    if not ended_badly and died is None:
        return []
    snapshot = model.of_failure(run)
    printed = "\n".join(output[-LAST:])
    wanted = died.error == "EOFError" if died is not None else wanted_input(printed)
    advice: Lines = []
    if wanted:
        advice = [[("  → ", "good"), f"the program reads its standard input, which is empty: {WITH_INPUT}"]]
    if died is None and snapshot is None:
        made = _from_output(run, output)
        return [*made[:1], *advice, *made[1:]]
    if died is not None:
        made = [[("✖ ", "error"), *uncaught(died)], *advice]
        made += [[("  → ", "good"), *spans] for spans in [removed(run)] if spans]
    else:
        message = (snapshot.error or "").strip() if snapshot is not None else ""
        made = [
            [("✖ ", "error"), ("Out of memory", "error"), f": {message.partition(chr(10))[0][:WORDS]}"],
            *advice,
        ]
    if died is not None:
        for n, frame in enumerate(died.stack[: 1 if brief else FRAMES]):
            made.append(
                [
                    ("  at " if n == 0 else "  called at ", "dim"),
                    (places.inside(frame) or "?", "name" if n == 0 else ""),
                ]
            )
        made += [[("  → ", "good"), *spans] for spans in donations(run, died.message, places)]
    elif snapshot is not None and snapshot.site is not None:
        made.append([("  at ", "dim"), places.inside(snapshot.site) or "?"])
    if snapshot is not None:
        made += [["  ", *spans] for spans in memory_needed(run, snapshot.site)]
        made += _alive(snapshot)[: 1 if brief else None]
    return made


def _alive(snapshot: model.Snapshot) -> Lines:
    """Return the total of the live arrays of ``snapshot``, and its largest groups of arrays by name."""
    largest = sorted(snapshot.groups, key=lambda g: -(g.global_bytes or 0))[:HOLDING]
    made: Lines = [["  ", *alive(snapshot), ("  5", "key"), (" shows where", "dim")]]
    for g in largest:
        copies = (f"  ●{g.replication}", "warning") if (g.replication or 1) > 1 else ""
        made.append([f"  {size(g.global_bytes):>12}  {g.path or 'unnamed'}", copies])
    return made


def _from_output(run: Run, output: Sequence[str]) -> Lines:
    """Return the error in ``output`` (the last lines that the program printed) and the frames of its
    traceback, innermost first. If there is no error, return how the program ended and its last lines."""
    tail = [line for line in output if line.strip()][-60:]
    start = next((n for n in range(len(tail) - 1, -1, -1) if tail[n].lstrip().startswith("Traceback ")), None)
    last = range(len(tail) - 1, max(-1, len(tail) - 1 - LAST), -1)
    error = next((n for n in last if start is not None and n > start and _ERROR.match(tail[n])), None)
    if error is None:
        error = next((n for n in last if "RESOURCE_EXHAUSTED" in tail[n]), None)
    if error is None:
        how, _ = ending(run, None)
        made: Lines = [
            [("✖ ", "error"), (how, "error"), (". Last lines of its output:" if tail else "", "dim")]
        ]
        return made + [[f"  {line}"] for line in tail[-FRAMES:]]
    made = [[("✖ ", "error"), (tail[error].strip()[:WORDS], "error")]]
    frames = [line.strip() for line in tail[start or 0 : error] if line.lstrip().startswith("File ")]
    made += [[("  ", ""), (line, "dim")] for line in reversed(frames[-FRAMES:])]
    return [*made, [("  full output: ", "dim"), ("7", "key")]]
