"""Sum the seconds of tracing, lowering and compiling by cause, function and the user's line."""

from __future__ import annotations

import msgspec

from jaxscope.model import causes
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.schema.keys import Frame


class Entry(msgspec.Struct, frozen=True):
    """The seconds that one function's compilations took at one line for one cause.

    Attributes:
      cause: the kind of the decisive cause: ``shape``, ``first``, ...
      path: the path of the argument, or the name of the setting; None: the cause has none, or ``function`` is
        None.
      source: the user's line that made the calls; None: unknown.
      function: the function of the user; None: operations outside jit and functions of libraries, summed.
      count: number of calls that missed a cache. A call that made JAX compile several programs, as under
        ``jax.grad``, counts once.
      trace_seconds, lower_seconds, compile_seconds: the seconds of these calls, without what other calls
        compiled inside their traces.
    """

    cause: str
    path: str | None
    function: Function | None
    source: Frame | None
    count: int
    trace_seconds: float
    lower_seconds: float
    compile_seconds: float

    @property
    def seconds(self) -> float:
        return self.trace_seconds + self.lower_seconds + self.compile_seconds


def entries(run: Run) -> list[Entry]:
    """Return the seconds of all compilations summed by cause, function and line, the largest sum first. Left
    out are calls that missed only the C++ fast path, and traces inside the trace of another function."""
    groups: dict[tuple[object, ...], list[Compilation]] = {}
    for c in run.compilations.values():
        if c.only_missed or c.entry == "nested":
            continue
        site = c.site.place if c.site is not None else None
        if c.function.user:
            cause = causes.of(run, c)[0]
            groups.setdefault((cause.kind, cause.path, c.function.id, site), []).append(c)
        else:
            groups.setdefault((causes.of(run, c)[0].kind, None, None, site), []).append(c)
    found = [
        Entry(
            str(kind),
            path if isinstance(path, str) else None,
            members[0].function if function is not None else None,
            members[0].site,
            _calls(run, members),
            sum(c.trace_seconds or 0.0 for c in members),
            sum(c.lower_seconds or 0.0 for c in members),
            sum(c.compile_seconds or 0.0 for c in members),
        )
        for (kind, path, function, _), members in groups.items()
    ]
    return sorted(found, key=lambda e: (-e.seconds, e.cause, e.function.id if e.function else ""))


def _calls(run: Run, members: list[Compilation]) -> int:
    """Return the number of calls by the user to which ``members`` belong. A call under ``jax.grad`` may have
    several members."""
    return len({causes.traced_by(c.function, run).get(c.id, c.id) for c in members})
