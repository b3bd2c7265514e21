"""Format the rows that show one program for several machines: the host, on which the program ran, and the
targets, which are other accelerators for which it was compiled, too.

If a target has another number of devices than the host, its programs are in another run inside the directory
of the main run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from rich.cells import cell_len

from jaxscope.analysis.hlo import branches
from jaxscope.analysis.hlo.program import Program as Compiled
from jaxscope.analysis.programs import NOTHING, Texts, peak_bytes
from jaxscope.log.jobs import CRASHED, EXHAUSTED, FAILED, LATE, MISSING, OK
from jaxscope.log.store import RunDir, label_of
from jaxscope.model import target_programs
from jaxscope.model.records import Compilation, Program
from jaxscope.model.run import Run
from jaxscope.present import targets
from jaxscope.present.programs import bytes_within, in_short
from jaxscope.present.runs import compilation_name
from jaxscope.present.text import Places, count, function_name, size
from jaxscope.report.text import which
from jaxscope.tui.cells import Column, Part, plain

SKIPPED, COMPILING, WAITING, ABANDONED, MADE_NONE = "skipped", "compiling", "waiting", "abandoned", "none"
LARGEST = 5  # largest buffers that are listed if a program does not fit into memory
NAME = 24  # characters of a machine's name
MARKS = {
    OK: ("✓", "good"),
    EXHAUSTED: ("✖", "error"),
    FAILED: ("✖", "warning"),
    CRASHED: ("✖", "warning"),
    LATE: ("✖", "warning"),
    MISSING: ("✖", "warning"),
    ABANDONED: ("✖", "warning"),
    SKIPPED: ("-", "warning"),
    COMPILING: ("…", "compile"),
    WAITING: ("·", "dim"),
    MADE_NONE: ("-", "dim"),
}


class Recording(Protocol):
    """A run (the recording of one program) with its directory and the program texts read so far.
    ``tui.feed.Feed`` has these members.

    Attributes:
      texts: the analyzed texts, by program id.
    """

    @property
    def run(self) -> Run: ...
    @property
    def directory(self) -> RunDir: ...
    @property
    def texts(self) -> Mapping[str, Texts]: ...
    def places(self) -> Places: ...


class Machine(NamedTuple):
    """A machine that the user can select: the host, or a target (another accelerator for which programs were
    compiled). With ``--vary``, each setting has its own machines.

    Attributes:
      name: the target, or the host of another run, and the settings: ``v5e:4x4 MESH=4x4``; None: the host of
        the main run.
      recording: the run with the programs for this machine.
      target: the target; None: the devices on which ``recording`` ran.
    """

    name: str | None
    recording: Recording
    target: str | None = None


class Seen(NamedTuple):
    """A compilation of the main run, and what corresponds to it on one machine (the host or a target).

    Attributes:
      asked: the compilation of the main run.
      compilation: the corresponding compilation in the machine's run; None: there is none.
      program: its program for the machine; None: there is none.
    """

    machine: Machine
    asked: Compilation
    compilation: Compilation | None
    program: Program | None

    @property
    def run(self) -> Run:
        return self.machine.recording.run

    @property
    def directory(self) -> RunDir:
        return self.machine.recording.directory

    @property
    def texts(self) -> Texts | None:
        return self.machine.recording.texts.get(self.program.id) if self.program is not None else None

    @property
    def state(self) -> str:
        """Return the state of the program: ``ok`` on the host, ``none`` if there is no program, else the
        program's own ``state``, such as ``compiling``."""
        if self.program is None:
            return MADE_NONE
        return OK if self.machine.target is None else self.program.state


def machines(recordings: Sequence[Recording]) -> list[Machine]:
    """Return all machines that the user can select: first the host, then the targets of all runs. If no run
    has a target, the host is repeated for each further setting of ``--vary``. ``recordings`` are the main
    run, then the runs inside its directory."""
    found: dict[str | None, Machine] = {None: Machine(None, recordings[0])}
    targets_of = {
        id(r): [t.name for t in r.run.targets]
        + sorted({p.target for p in list(r.run.retargeted.values()) if p.target})
        for r in recordings
    }
    for recording in recordings:
        label = label_of(recording.directory)
        for target in targets_of[id(recording)]:
            name = f"{target} {label}".rstrip()
            found.setdefault(name, Machine(name, recording, target))
        if not any(targets_of.values()) and recording is not recordings[0]:
            name = f"{_host(recording)} {label}".rstrip()
            found.setdefault(name, Machine(name, recording))
    return list(found.values())


def _host(recording: Recording) -> str:
    """Return ``host cpu``: the word with the platform on which the program ran, if known."""
    return f"host {recording.run.platform or ''}".strip()


def find(all_machines: Sequence[Machine], name: str | None) -> Machine:
    """Return the machine in ``all_machines`` with the name ``name``; if there is none, the first one, which
    is the host."""
    return next((m for m in all_machines if m.name == name), all_machines[0])


def display_name(machine: Machine) -> str:
    """Return the displayed name of a machine, cut to NAME characters: the name of the target, or the host
    with its platform, ``host cpu``, and the settings of ``--vary``."""
    name = machine.name
    if name is None:
        name = f"{_host(machine.recording)} {label_of(machine.recording.directory)}".rstrip()
    return name if len(name) <= NAME else name[: NAME - 1] + "…"


def seen_as(c: Compilation, machine: Machine, main: Run) -> Seen:
    """Return the compilation and the program on ``machine`` (the host or a target) that correspond to ``c``,
    a compilation of the main run ``main``."""
    run = machine.recording.run
    same = counterpart(c, main, run)
    if same is None:
        return Seen(machine, c, None, None)
    if machine.target is None:
        return Seen(machine, c, same, run.programs.get(same.program or ""))
    programs = [
        p for p in list(run.retargeted.values()) if p.target == machine.target and same in p.compilations
    ]
    programs.sort(key=lambda p: p.state != OK)  # a call lowered twice has two: prefer the one that compiled
    return Seen(machine, c, same, programs[0] if programs else None)


def counterpart(c: Compilation, own: Run, run: Run) -> Compilation | None:
    """Return the compilation of ``run`` that corresponds to ``c``, a compilation of the run ``own``: it is of
    the same function and has the same number. None if there is none."""
    if run is own:
        return c
    function, number = run.functions.get(c.function.id), own.number(c)
    if function is None or number is None:
        return None
    return dict(run.numbered(function)).get(number)


# -- above the texts ------------------------------------------------------------------------------


def strip(
    all_machines: Sequence[Machine],
    chosen: Machine,
    c: Compilation | None,
    main: Run,
    keys: tuple[str, str],
    width: int,
) -> list[Part]:
    """Return the line that lists ``all_machines``, the host and the targets: ``t T targets:
    [host cpu] v5e:16x16 ✓ h100:8 …``. Empty if there is only the host. If there is not enough room, the line
    begins at a later machine, so that the selected one is visible.

    Args:
      chosen: the selected machine, shown in brackets.
      c: the compilation whose state is shown for each target. None: each target shows the state of one of its
        programs: of one that is still compiling or has failed, if there is any.
      main: the main run, which has the compilation ``c``.
      keys: two keys, to show in the line: the first selects the next machine, the second opens the list that
        compares the machines.
      width: characters of the line.
    """
    if len(all_machines) < 2:
        return []
    each: list[list[Part]] = []
    for machine in all_machines:
        mark, style = "", ""
        if machine.target is not None:
            mark, style = (
                _of_all(machine) if c is None else MARKS.get(seen_as(c, machine, main).state, ("?", "dim"))
            )
        name = display_name(machine)
        if machine.name == chosen.name:
            each.append(
                [(f" [{name}", "title"), (f" {mark}" if mark else "", style or "title"), ("]", "title")]
            )
        else:
            each.append([f"  {name}", (f" {mark}" if mark else "", style), " "])
    next_, beside = keys
    parts: list[Part] = [(f" {next_}", "key"), (f" {beside}", "key"), (" targets: ", "dim")]
    at = next((n for n, m in enumerate(all_machines) if m.name == chosen.name), 0)
    room = width - cell_len(plain(parts)) - 4
    first = 0
    while first < at and sum(cell_len(plain(p)) for p in each[first : at + 1]) > room:
        first += 1
    return [*parts, *([("  …", "dim")] if first else []), *(p for one in each[first:] for p in one)]


def _of_all(machine: Machine) -> tuple[str, str]:
    """Return (glyph, style) for the state of the programs of ``machine``. If their states differ, one that
    still compiles or waits has precedence, then one that failed, then one that compiled."""
    states = {p.state for p in programs(machine).values()}
    for state in (COMPILING, WAITING, EXHAUSTED, CRASHED, FAILED, LATE, MISSING, ABANDONED, OK, SKIPPED):
        if state in states:
            return MARKS[state]
    return MARKS[MADE_NONE]


def programs(machine: Machine) -> dict[str, Program]:
    """Return {id: program} of all programs for a machine."""
    run = machine.recording.run
    if machine.target is None:
        return dict(run.programs)
    return {p.id: p for p in list(run.retargeted.values()) if p.target == machine.target}


def summary(on_machine: Seen) -> list[Part]:
    """Return the line about the program of ``on_machine`` as styled text: ``train_step #2 for v5e:4x4
    compiled · 412 instructions · ...``."""
    c = on_machine.compilation
    name = function_name(on_machine.asked.function) if c is None else compilation_name(on_machine.run, c)
    parts: list[Part] = [(name, "name"), (f" for {display_name(on_machine.machine)}", "collective")]
    if on_machine.program is None:
        return [*parts, ("  no program", "dim")]
    status, style = _state(on_machine.program)
    parts.append((f"  {status}", style))
    texts = on_machine.texts
    if texts is None:
        return parts if on_machine.program.target_compiled is None else [*parts, ("  reading …", "dim")]
    if texts.hlo is not None and texts.hlo.module is not None:
        parts.append(f" · {count(texts.hlo.instructions, 'instruction')}")
    short = in_short(texts, None)
    return [*parts, f" · {short}"] if short else parts


def _state(p: Program) -> tuple[str, str]:
    if p.state == EXHAUSTED:
        return targets.STATES[EXHAUSTED], "error"
    return targets.state(p)


def verdict(on_machine: Seen) -> list[Part]:
    """Return the line that says whether the program of ``on_machine`` fits into the target's memory, and
    gives lower bounds of its run time: ``3.2 MiB of 15.8 GiB on a device · no call takes less than ...``.
    What is unknown is left out; the line is empty on the host."""
    if on_machine.program is None or on_machine.machine.target is None or on_machine.texts is None:
        return []
    parts: list[Part] = []
    fit = target_programs.fit(on_machine.run, on_machine.program)
    if fit is not None:
        parts += targets.memory_fit(fit)
    bounds = target_programs.bounds_of(on_machine.run, on_machine.program)
    if bounds is not None and bounds.binds is not None:
        parts += [" · " if parts else "", *targets.bounds(bounds)]
    cycles = on_machine.texts.hlo.estimated_cycles if on_machine.texts.hlo is not None else None
    if cycles:
        parts.append((f" · {targets.cycles(cycles)}", "dim"))
    return parts


def absent(on_machine: Seen, stage: str) -> str:
    """Return a text that says why a program's text is missing for a machine, and sometimes what the user can
    do. If the HLO is missing because the program does not fit into memory, the text lists the largest
    buffers, as far as the compiler names them.

    Args:
      on_machine: the compilation on this machine.
      stage: the missing text: ``stablehlo`` or ``hlo``.
    """
    name, p = display_name(on_machine.machine), on_machine.program
    if p is None:
        return _never(on_machine)
    if p.state == SKIPPED:
        why = " ".join(
            (
                p.target_lowered.skipped
                if p.target_lowered is not None and p.target_lowered.skipped
                else "not known"
            ).split()
        )
        return f"Not lowered for {name}: {why}. The program of the host is available."
    if stage == "stablehlo":
        return "The lowered text was not recorded."
    if p.state == WAITING:
        ahead = sum(o.state == WAITING for o in on_machine.run.retargeted.values()) - 1
        others = f", with {ahead} others" if ahead else ""
        if p.waits_for:
            others += f"; {targets.waiting(p.waits_for)}"
        return (
            f"Waiting for the compiler of {name}{others}. The text appears here when it is done; "
            "jaxscope run --wait-targets returns when all are compiled."
        )
    if p.state == COMPILING:
        return f"Compiling for {name}. The HLO appears here when it is done."
    if p.state == EXHAUSTED:
        return "\n".join(_filling(on_machine))
    error = " ".join((p.target_compiled.error or "").split()) if p.target_compiled is not None else ""
    if p.state == OK:
        return "The compiler returned no text." if "hlo" not in p.texts else "The text is missing."
    explanations = {
        CRASHED: f"The compiler of {name} crashed: {error}\nOther programs are not affected."
        f" To retry this one: jaxscope compile MODULE:FUNCTION --target {on_machine.machine.target}",
        LATE: f"{error}\nTo compile it alone: jaxscope compile MODULE:FUNCTION --target"
        f" {on_machine.machine.target}",
        MISSING: error,
        ABANDONED: f"Not compiled for {name}: the compiler's process has ended.\nTo compile it now:"
        " jaxscope compile --rest latest",
    }
    return explanations.get(p.state, f"The compiler of {name} failed: {error}")


def _never(on_machine: Seen) -> str:
    """Return a text that says why there is no program for the machine of ``on_machine``."""
    name, f = display_name(on_machine.machine), on_machine.asked.function
    where = f"jaxscope view{which(on_machine.directory)}"
    if on_machine.compilation is None:
        devices = len(on_machine.run.devices)
        on = f"on {count(devices, 'device')}" if devices else "of its own"
        return f"The run {on} for {name} has no such compilation of {function_name(f)}. To view it: {where}"
    if not on_machine.compilation.lowered:
        return f"This call was not lowered here, so not for {name} either. , and . go to lowered calls."
    if not f.user:
        return f"Only your own functions are compiled for {name}: press 2 for the list."
    return f"Not lowered for {name}."


def _filling(on_machine: Seen) -> Iterator[str]:
    """Yield lines with the buffers that fill the memory of a device. ``on_machine`` is a compilation whose
    program does not fit."""
    assert on_machine.program is not None
    fit = target_programs.fit(on_machine.run, on_machine.program)
    if fit is None or fit.used is None:
        error = (
            on_machine.program.target_compiled.error
            if on_machine.program.target_compiled is not None
            else None
        )
        yield f"It does not fit: {' '.join((error or 'the compiler gives no figures').split())}"
        return
    for spans in (targets.memory_fit(fit), *targets.largest(fit, on_machine.texts or NOTHING, LARGEST)):
        yield plain(spans)


def no_collectives(machine: Machine) -> str:
    """Return a text that says why no collectives are listed for a machine: its programs do not communicate,
    are still being compiled or read, were not compiled, or do not exist."""
    name, found = display_name(machine), programs(machine)
    states = [p.state for p in found.values()]
    unread = sum(s == OK and id not in machine.recording.texts for id, s in zip(found, states, strict=True))
    going = states.count(COMPILING) + states.count(WAITING) + unread
    if going:
        return (
            f"{count(going, 'program')} for {name} {'is' if going == 1 else 'are'} being compiled or"
            f" read. Collectives appear here when that is done."
        )
    if OK in states:
        rest = len(states) - states.count(OK)
        more = f" {count(rest, 'further program')} not compiled: press 3 for the reason." if rest else " ✓"
        return f"None: the {count(states.count(OK), 'program')} for {name} do not communicate.{more}"
    if states:
        return f"No program was compiled for {name}: press 3 for the reasons."
    return f"None of your functions was lowered for {name}."


# -- side by side ---------------------------------------------------------------------------------


def _hlo(s: Seen) -> Compiled | None:
    """Return the analyzed HLO of the program of ``s``; None: not read, or there is none."""
    found = s.texts.hlo if s.texts is not None else None
    return found if found is not None and found.module is not None else None


def _figure(s: Seen, count_of: Callable[[Compiled], int]) -> str:
    found = _hlo(s)
    return "" if found is None else f"{count_of(found):,}"


def _mark(s: Seen, _: int) -> list[Part]:
    return [] if s.machine.target is None else [MARKS.get(s.state, ("?", "dim"))]


def _words(s: Seen) -> str:
    """Return the state of the program of ``s`` in words: ``ran``, ``compiled``, ``does not fit``."""
    if s.program is None:
        return "no program"
    return targets.STATES.get(s.state, s.state) if s.machine.target is not None else "ran"


def _sends(s: Seen, _: int) -> str:
    """Return the bytes that a device sends in one call of the program; empty if its HLO is not read."""
    found = _hlo(s)
    if found is None:
        return ""
    return bytes_within(branches.bounds_of((c.branches, c.sent_bytes) for c in found.collectives))


def _memory(s: Seen, _: int) -> str:
    """Return the memory that the program of ``s`` uses on a device, with the capacity if known: ``3.2 MiB of
    15.8 GiB``, or ``does not fit: 20.3 GiB``. If the use is unknown, return the state of the program:
    ``compiling``."""
    used = capacity = None
    if s.program is not None and s.machine.target is None:
        own = (s.compilation.compiled if s.compilation is not None else None) or s.program.compiled
        used = peak_bytes(own.memory) if own is not None and own.memory is not None else None
    elif s.program is not None:
        fit = target_programs.fit(s.run, s.program)
        used, capacity = (fit.used, fit.capacity) if fit is not None else (None, None)
        if fit is not None and fit.fits is False and used is not None:
            return f"does not fit: {size(used)}"
    if used is None:
        return _words(s)
    return size(used) + (f" of {size(capacity)}" if capacity is not None else "")


def _bound(s: Seen, _: int) -> str:
    """Return the largest lower bound of the run time: ``4.1 ms, compute``; empty on the host, and if
    unknown."""
    if s.machine.target is None or s.program is None or s.texts is None:
        return ""
    found = target_programs.bounds_of(s.run, s.program)
    return targets.least(found) if found is not None else ""


def columns(all_machines: Sequence[Machine]) -> list[Column[Seen]]:
    named = max(14, *(len(display_name(m)) for m in all_machines))
    return [
        Column("", _mark, 1),
        Column("target", lambda s, _: [(display_name(s.machine), "bold")], named),
        Column("", lambda s, _: _words(s), 12, wide=90),
        Column("fusions", lambda s, _: _figure(s, lambda h: h.fusions.total), 7, right=True, wide=90),
        Column("coll.", lambda s, _: _figure(s, lambda h: len(h.collectives)), 5, right=True),
        Column("sends", _sends, 9, right=True, wide=76),
        Column("memory of a device", _memory, 22, right=True),
        Column("least (bound)", _bound),
    ]


def seen_id(s: Seen) -> str:
    return "host" if s.machine.name is None else f"for {s.machine.name}"
