"""Compare two lowered programs: for each line of the user's code, find the operations that only one of the
two programs has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from jaxscope.analysis.stablehlo import reader
from jaxscope.analysis.stablehlo.constants import first_uses
from jaxscope.analysis.stablehlo.module import NOT_OPERATIONS, Module
from jaxscope.analysis.stablehlo.sources import Sources
from jaxscope.schema.keys import Frame

MOST = 4  # the most operations that are listed for one line
LONGEST = 80  # characters of an operation's text
# Addresses and numbers of host callbacks differ between processes that run the same program.
_OWN = re.compile(r"(backend_config|call_target_id|index|descriptor) = (\"\d+\"|\d+|\{[^{}]*\})|\b\d{12,}\b")
_ALIAS = re.compile(r" loc\([^()]*(?:\([^()]*\))?\)|\n#loc[^\n]*")
_ZEROS = re.compile(r"(\d\.\d*?)0+e\+00\b")


class AtLine(NamedTuple):
    """The operations of one line of the user's code that only one of two programs has.

    Attributes:
      source: the line; None: no line is known.
      before, after: the operations of the first and of the second program, as text: ``add 16xf32``. At most
        four of each.
    """

    source: Frame | None
    before: tuple[str, ...]
    after: tuple[str, ...]


def same_for_all_processes(text: str) -> str:
    """Return the StableHLO of a program without locations, addresses and callback numbers. These differ
    between processes that run the same program, so the rest can be compared."""
    return _OWN.sub("", _ALIAS.sub("", "\n" + text))


def by_line(before: str, after: str) -> list[AtLine]:
    """Return the lines of the user's code whose operations differ between two programs. ``before`` and
    ``after`` are the StableHLO of the programs. Lines that lost operations come first, operations without a
    known line last. A constant or a broadcast belongs to the line of the operation that first uses it."""
    old, new = Counter(_operations(reader.read(before))), Counter(_operations(reader.read(after)))
    gone, come = old - new, new - old
    lines = dict.fromkeys(source for source, _ in (*gone, *come))
    found = [AtLine(source, _texts(gone, source), _texts(come, source)) for source in lines]
    return sorted(found, key=lambda each: each.source is None)


def _texts(counted: Counter[tuple[Frame | None, str]], source: Frame | None) -> tuple[str, ...]:
    """Return the texts of the operations of the line ``source`` in ``counted``, at most MOST (4)."""
    return tuple(text for at, text in counted if at == source)[:MOST]


def _operations(module: Module) -> Iterator[tuple[Frame | None, str]]:
    """Yield (line of the user's code, text) for each operation of a module. For a constant or a broadcast, it
    is the line of the operation that first uses it."""
    sources = Sources(module)
    users = first_uses(module, set(range(len(module.ops))))
    for index, op in enumerate(module.ops):
        if op.name in NOT_OPERATIONS:
            continue
        at = index
        while module.ops[at].name in ("stablehlo.constant", "stablehlo.broadcast_in_dim") and at in users:
            at = users[at]
        yield sources.frame(at), _spelled(op.name, op.callee, op.detail, op.outputs)


def _spelled(name: str, callee: str | None, detail: str, outputs: tuple[str, ...]) -> str:
    """Write an operation as short text: ``constant dense<2.0> f32`` or ``reduce applies add across dimensions
    = [0] 16xf32``. The arguments are fields of ``module.Op``; ``outputs`` are the types of the results."""
    types = ", ".join(t.removeprefix("tensor<").removesuffix(">") for t in outputs)
    what = " ".join(
        detail.replace("stablehlo.", "").replace("%", "").replace("( init: )", "").strip(" ,").split()
    )
    text = " ".join(part for part in (name.rpartition(".")[2], callee, what, types) if part)
    return _ZEROS.sub(lambda m: m[1] + "0" if m[1].endswith(".") else m[1], text)[:LONGEST]
