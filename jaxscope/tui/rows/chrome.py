"""Format the lines at the top of every screen: the run (the recording of one program) and its state, the
names of the screens, and what was not recorded."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from jaxscope.log.store import RunDir
from jaxscope.model import causes, transfers
from jaxscope.model.run import Run
from jaxscope.present.runs import ending, gaps, title
from jaxscope.present.text import count, seconds
from jaxscope.schema.findings import NOTE, Finding
from jaxscope.tui.actions import VIEWS
from jaxscope.tui.cells import Button, Part, plain
from jaxscope.tui.rows.functions import used

SHORT = 4  # letters of the other screens' names if there is no room for all names


def header(
    run: Run, directory: RunDir, state: str, *, paused: bool, width: int, machine: str | None = None
) -> list[Part]:
    """Return the first line of a screen: ``train.py ● running 2 min 14 s step 381 ▲ 4 recompiles of
    your 3 functions  7 programs``.

    Args:
      state: the state of the run: running, exited, stopped or lost.
      paused: whether the user paused the updates.
      width: characters of the line; the last facts are left out if they have no room.
      machine: the target (``--target``) whose program is shown; None: the machine that ran the program.
    """
    made: list[Part] = [
        (" jaxscope ", "title"),
        " ",
        (title(run, directory)[: max(12, width // 3)], "bold"),
        "  ",
    ]
    if machine is not None:  # the screen shows a program that did not run here
        made += [(f"for {machine}", "collective"), "  "]
    total = seconds(run.seconds)
    if state == "running":
        made += [("‖ paused ", "warning") if paused else ("● running ", "good"), total]
    else:
        how, bad = ending(run, directory)
        made += [(f"✖ {how}", "error") if bad else (f"✓ {how}", "good"), f"  {total}"]
    step = max((transfers.steps(run, p) or 0 for p in run.processes.values()), default=0)
    if step:
        made.append(f"  step {step:,}")
    users = [f for f in run.functions.values() if f.user and used(f)]
    again = recompiles(run)
    partly: list[Part] = []
    if run.degraded or run.damaged or run.unknown:
        partly = [("  ◐ partly recorded", "warning" if run.damaged or run.unknown else "dim")]
    recompiled: list[Part] = [
        (f"▲ {count(again, 'recompile')}", "retrace") if again else ("no recompiles", "dim")
    ]
    whose = "function" if len(users) == 1 else f"{len(users):,} functions" if users else "functions"
    of: list[Part] = [(f" of your {whose}", "dim")]
    if cell_len(plain([*made, "  ", *recompiled, *of, *partly])) > width:
        of = []
    made += ["  ", *recompiled, *of, *partly]
    main = run.main
    extra = [count(len(run.programs), "program")]
    if main is not None and main.started is not None:
        extra.append(f"JAX {main.started.jax or '?'}")
    if run.devices:
        extra.append(count(len(run.devices), "device"))
    for text in extra:  # as far as there is room
        if cell_len(plain(list(made))) + cell_len(text) + 2 > width:
            break
        made.append((f"  {text}", "dim"))
    return made


_counted: tuple[int, int, int] = (0, -1, 0)  # the run's id(), its version, and the number of recompiles


def recompiles(run: Run) -> int:
    """Return the number of recompilations of the user's functions. It is computed again only when the run has
    changed."""
    global _counted  # the view calls this ten times per second
    if _counted[:2] != (id(run), run.version):
        total = sum(len(causes.recompiles(f, run)) for f in run.functions.values() if f.user)
        _counted = (id(run), run.version, total)
    return _counted[2]


def tabs(current: str, findings: Sequence[Finding], width: int) -> list[Part | Button]:
    """Return the names of the screens, each a button with its key. ``current`` is the shown screen. The
    number of ``findings`` follows the name of their screen, as a warning if one of them is more than a note.
    If ``width`` characters are too few, the other names are cut."""
    number, serious = len(findings), any(f.severity != NOTE for f in findings)
    fit = sum(len(words) + 3 for _, _, words in VIEWS) + len(f" ({number:,})") + 1 <= width
    made: list[Part | Button] = []
    for key, name, words in VIEWS:
        label = words if fit or name == current else words[:SHORT]
        counted: list[Part] = []
        if name == "findings" and number:
            counted = [(f" ({number:,})", "warning")] if serious else [f" ({number:,})"]
        shown: list[Part] = [(f" {key} ", "key"), label, *counted]
        if name == current:
            shown = [(f"[{key} {plain([label, *counted])}]", "tab")]
        made += [Button(shown, f"app.show('{name}')")]
    return made


def lost(run: Run) -> list[Part]:
    """Return one line about what was not recorded; empty if everything was recorded."""
    found = gaps(run)
    if not found:
        return []
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return [(" ◐ ", "warning"), *found[0], (f"{more}; see jaxscope doctor", "dim")]
