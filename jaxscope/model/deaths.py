"""Describe how the recorded program failed.

If it failed because an array was deleted, find the call to which the array was donated.
"""

from __future__ import annotations

import re
import signal
from typing import NamedTuple

from jaxscope.analysis import removed_names
from jaxscope.analysis.avals import short_aval
from jaxscope.analysis.removed_names import Line, Removed
from jaxscope.model import sources
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.schema.keys import Frame
from jaxscope.schema.libraries import no_memory
from jaxscope.schema.messages import Message, message

# "Array has been deleted with shape=float32[4,4]." and "... buffer has been deleted or donated."
_DELETED = re.compile(r"deleted (?:with shape=(\w+)\[([\d,]*)\]|or donated)", re.IGNORECASE)
# XLA's message about a GPU whose memory ran out: "... on device 0. [executable_name='jit_step']"
_EXECUTABLE = re.compile(r"executable_name='([^']+)'")
_NOT_IN_NAMES = re.compile(r"\W+")
MOST = 3  # the most arguments that ``donors`` returns


class Death(NamedTuple):
    """How a program failed.

    Attributes:
      text: the message for the user.
      source: the user's line that raised the exception; None: unknown, or there was no exception.
      surely: whether a signal or an exception ended the program. False: it ended with a nonzero exit code,
        which may be intended.
    """

    text: Message
    source: Frame | None
    surely: bool


def of_run(run: Run) -> Death | None:
    """Return how the program failed: by a signal, by an exception of its main process, or with a nonzero exit
    code. None if it did not fail, or if that is unknown."""
    exited = run.exited
    died = run.main.died if run.main is not None and run.main_recorded else None
    if exited is not None and exited.signal is not None:
        known = exited.signal in {s.value for s in signal.Signals}
        name = signal.Signals(exited.signal).name if known else f"signal {exited.signal}"
        return Death(message("program-killed", signal=name), None, True)
    if exited is not None and not exited.exit_code:
        return None
    if died is not None:
        first = died.message.strip().partition("\n")[0]
        text = message(
            "program-raised",
            error=died.error,
            message=message("error-message", message=first) if first else None,
            code=message("exit-code", code=str(exited.exit_code)) if exited is not None else None,
        )
        return Death(text, died.stack[0] if died.stack else None, True)
    if exited is None:
        return None
    return Death(message("program-exited", code=str(exited.exit_code)), None, False)


def without_memory(c: Compilation) -> bool:
    """Return whether memory ran out in the program that ``c`` compiled: the error message names the HLO
    module of the program (``executable_name='jit_step'``)."""
    # The line of the error does not tell: a GPU runs a program after the call has returned, and the error is
    # raised at the next line that needs a result.
    process = c.process
    messages = [e.error for e in reversed(process.snapshots) if e.error is not None]
    if process.died is not None and no_memory(process.died.message):
        messages.append(process.died.message)
    named = next((found[1] for text in messages if (found := _EXECUTABLE.search(text))), None)
    # The module's own name may be ``jit(step)``.
    module = c.compiled.module if c.compiled is not None else None
    return bool(named and module) and _NOT_IN_NAMES.sub("_", module or "").strip("_") == named


def removed_name(run: Run) -> Removed | None:
    """Return what made the main process of the program fail because the version of JAX does not have it: a
    name such as ``jax.tree_map``, an argument, or ``with mesh:``; with what to use instead. None if the
    program did not fail, or failed for another reason."""
    main = run.main
    if main is None or main.died is None:
        return None
    text, died = sources.of(run), main.died
    lines = [Line(text(frame.file), frame.line) for frame in died.stack]
    jax = main.started.jax if main.started is not None else None
    return removed_names.find(died.error, died.message, lines, library=died.library is not None, jax=jax)


def donors(run: Run, message: str) -> list[tuple[Compilation, str]]:
    """Return (call, argument path) of the donated arguments that may be the deleted array of the error
    ``message``. If the message names a shape and dtype, only arguments with these are returned.

    Each argument of a function occurs once, with the latest call that donated it. At most MOST are returned,
    the latest call first. Empty if the error is not about a deleted array."""
    match = _DELETED.search(message)
    if match is None:
        return []
    dtype, shape = match.group(1), match.group(2)
    found: dict[tuple[str, str], Compilation] = {}
    for c in sorted(run.compilations.values(), key=lambda c: c.t_ns):
        if c.key is None or c.lowered is None or c.entry != "call":
            continue
        donated = set(c.lowered.donated or ())
        for leaf in c.key.arguments:
            spelled = ",".join(map(str, leaf.shape or ()))
            if leaf.path in donated and (dtype is None or (leaf.dtype, spelled) == (dtype, shape)):
                found[c.function.id, leaf.path] = c
    ranked = sorted(found.items(), key=lambda item: -item[1].t_ns)
    return [(c, path) for (_, path), c in ranked][:MOST]


def aval(c: Compilation, path: str) -> str:
    """Return the type of the argument ``path`` of call ``c`` as text: ``f32[4,4]``; ``?`` if it is
    unknown."""
    leaves = c.key.arguments if c.key is not None else []
    leaf = next((leaf for leaf in leaves if leaf.path == path), None)
    return "?" if leaf is None else short_aval(leaf.shape, leaf.dtype)
