"""``jaxscope doctor --probe``: record a small program with the installed JAX, and check for which fields its
log has no value although it should."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from jaxscope.errors import JaxscopeError
from jaxscope.log import files, reader, store
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Key

SECONDS = 300  # the program is stopped if it runs longer
PROGRAM = """\
import sys
import jax, numpy as np
import jaxscope

one = jax.sharding.SingleDeviceSharding(jax.devices()[0])
table = np.arange(64, dtype="f4")

@jaxscope.watch(step=True)
@jax.jit
def step(state, scale, unused):
    return state * scale + jax.numpy.asarray(table)[0]

def scaled(state, n):
    return {"scaled": state * n + captured}

with jaxscope.record(sys.argv[1]):
    captured = jax.device_put(table)
    jitted = jax.jit(scaled, static_argnums=1, donate_argnums=0, in_shardings=one)
    given = jax.device_put(np.ones(64, "f4"))
    result = jitted(given, 2)
    step(result["scaled"], 2.0, 1.0)
    jax.grad(lambda x: jax.jit(lambda v: v * v)(x))(1.0)
    jax.jit(scaled, static_argnums=1).lower(result["scaled"], 3).compile()
    float(result["scaled"][0])
"""
# Fields that the log of that program has at least once.
FIELDS: dict[str, tuple[str, ...]] = {
    "BackendSeen": ("platform", "devices"),
    "FunctionSeen": ("name", "file", "line", "signature"),
    "ContextSeen": ("settings",),
    "Missed": ("function", "entry", "site", "column", "key", "cleared", "full", "made"),
    "Key": ("arguments", "static", "tree", "options", "context", "shardings", "function_object", "call_form"),
    "Traced": ("seconds", "out_tree", "out", "captured", "equations", "effects"),
    "Lowered": (
        "seconds", "program", "module", "donated", "num_partitions", "platforms", "asked", "asked_in",
        "asked_out",
    ),
    "Compiled": (
        "seconds", "program", "module", "persistent_cache", "memory", "cost", "out_shardings",
        "out_sharding_of",
        "out_committed", "dropped_arguments", "devices",
    ),
    "ProgramText": ("blob",),
    "Called": ("count",),
    "ArgumentFate": ("deleted",),
    "ArraysSeen": ("groups",),
    "Transferred": ("count", "bytes", "seconds"),
}  # fmt: skip
# Fields whose known value in that program is empty.
MAY_BE_EMPTY = frozenset({"Traced.effects", "Missed.full", "Missed.cleared"})


class Field(NamedTuple):
    """A field of an event in the log.

    Attributes:
      name: ``Event.field``, such as ``Compiled.memory``.
      filled: whether the log of the program has a value for the field.
      needs: names of the functions, classes and attributes of JAX from which jaxscope reads the field. Names
        that the installed JAX does not have are first. Empty if the field is filled.
    """

    name: str
    filled: bool
    needs: list[str]


def probe() -> list[Field]:
    """Record a small program in another process. Return the log fields for which this program should have a
    value, each with whether the installed JAX gave one.

    Raises:
      JaxscopeError: the program failed, or did not end within SECONDS seconds.
    """
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        env = {k: v for k, v in os.environ.items() if not k.startswith("JAXSCOPE")}
        program = Path(folder) / "probe.py"
        files.write(program, PROGRAM)
        try:
            done = subprocess.run(
                [sys.executable, str(program), str(run)],
                env=env,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise JaxscopeError(
                f"the probe was stopped: its program did not end within {SECONDS} s", slug="probe-failed"
            ) from None
        if done.returncode != 0:
            last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
            raise JaxscopeError(f"the program of the probe failed: {last[0][:500]}", slug="probe-failed")
        return fields(reader.read(store.RunDir(run)))


def fields(events: Iterable[Any]) -> list[Field]:
    """Return the log fields that the probe program should fill (``FIELDS``), each with whether one of
    ``events``, the events of its log, has a value for it."""
    filled: set[str] = set()
    for event in events:
        kind = type(event).__name__
        _note(filled, kind, event)
        if isinstance(event, ev.Missed) and event.key is not None:
            _note(filled, "Key", event.key)
    names = [f"{kind}.{field}" for kind, found in FIELDS.items() for field in found]
    return [Field(n, n in filled, [] if n in filled else _needs(n)) for n in names]


def _note(filled: set[str], kind: str, value: ev.Event | Key) -> None:
    missing = value.missing if isinstance(value, Key) else ()
    for field in FIELDS.get(kind, ()):
        name, found = f"{kind}.{field}", getattr(value, field, None)
        empty = found is None or (found in ("", [], {}) and name not in MAY_BE_EMPTY)
        if not empty and field not in missing:
            filled.add(name)


def _needs(field: str) -> list[str]:
    needed: list[tuple[bool, str]] = importlib.import_module("jaxscope.jax_internals").needed_for(field)
    if not needed and field.startswith("Key."):
        needed = importlib.import_module("jaxscope.jax_internals").needed_for("Missed.key")
    return [name for _, name in sorted(needed, key=lambda n: n[0])]
