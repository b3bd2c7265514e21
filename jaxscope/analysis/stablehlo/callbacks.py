"""Find where a program calls Python on the host (``pure_callback``, ``io_callback``, ``debug.print``,
``debug.callback``), and infeed and outfeed.

On CPU and GPU each callback is one custom call. On TPU it is a ``send`` for every operand and a ``recv`` for
every result, all at one location. The text does not name the Python function.
"""

from __future__ import annotations

import re

import msgspec

from jaxscope.analysis.stablehlo import types
from jaxscope.analysis.stablehlo.module import Module, Op
from jaxscope.analysis.stablehlo.sources import LIBRARIES, Sources
from jaxscope.schema.keys import Frame
from jaxscope.schema.libraries import JAX_ROOTS

TARGET = re.compile(r"xla_(?:ffi_)?(?:partitioned_|buffer_)*python_\w*callback")
HOST = re.compile(r"\bis_host_transfer(?: = true)?\b(?! = false)")
KINDS = frozenset(
    {"pure_callback", "io_callback", "debug_callback", "debug_print", "buffer_callback", "python_callback"}
)
TOKEN = "!stablehlo.token"
PACKAGE = re.compile(LIBRARIES.pattern + r"(\w+)")


class Callback(msgspec.Struct, frozen=True):
    """A place where the program calls Python on the host, or an infeed or outfeed.

    Attributes:
      kind: JAX's name of the primitive (``pure_callback``), or ``infeed`` or ``outfeed``; None: unknown.
      target: the target of the custom call; None if the callback is not a custom call.
      count: how often the callback occurs in the program, with called functions inlined and loop bodies
        counted once.
      ordered: whether a token keeps the callback in order with other effects; None: unknown, because the
        callback is not a custom call.
      in_loop: whether the callback is in a loop.
      bytes_to_host, bytes_from_host: bytes that one execution sends and receives; None: unknown.
      source: the line of the user's code; None: unknown.
      in_branch: whether the callback runs only if a branch of a conditional is taken.
      library: the installed package other than JAX whose code makes the callback, such as ``equinox``; None:
        there is none, or it is unknown.
    """

    kind: str | None
    target: str | None
    count: int
    ordered: bool | None
    in_loop: bool
    bytes_to_host: int | None
    bytes_from_host: int | None
    source: Frame | None
    in_branch: bool = False
    library: str | None = None


def find(module: Module, sources: Sources) -> list[Callback]:
    """Return the callbacks, infeeds and outfeeds of a program in the order of the text. Callbacks that the
    text writes as sends and receives (on TPU) come last."""
    found: list[Callback] = []
    transfers: dict[tuple[str, int, int], list[int]] = {}
    for index, op in enumerate(module.ops):
        if not sources.times[op.function]:
            continue
        operation = op.name.rpartition(".")[2]
        if operation == "custom_call":
            if op.callee is not None and TARGET.fullmatch(op.callee):
                found.append(_callback(module, sources, [index], op.callee))
        elif operation in ("infeed", "outfeed"):
            found.append(_callback(module, sources, [index], None, operation))
        elif operation in ("send", "recv") and HOST.search(op.detail):
            transfers.setdefault((op.location, op.function, op.block), []).append(index)
    for indices in transfers.values():
        found.append(_callback(module, sources, indices, None))
    return found


def _callback(
    module: Module, sources: Sources, indices: list[int], target: str | None, kind: str | None = None
) -> Callback:
    """Describe one callback, infeed or outfeed. ``indices`` are the operations that it consists of.
    ``target`` is the target of its custom call, if it is one. If ``kind`` is None, the kind is read from the
    operation's name."""
    ops = [module.ops[i] for i in indices]
    primitive = (sources.place(indices[0]).name or "").rpartition("/")[2]
    if kind is None and primitive in KINDS:
        kind = primitive
    ordered = None if target is None else any(t == TOKEN for t in ops[0].inputs)
    return Callback(
        kind=kind,
        target=target,
        count=sources.times[ops[0].function],
        ordered=ordered,
        in_loop=sources.in_loop(indices[0]),
        bytes_to_host=_bytes(ops, inputs=True),
        bytes_from_host=_bytes(ops, inputs=False),
        source=sources.frame(indices[0]),
        in_branch=sources.in_branch(indices[0]),
        library=_library(sources, indices[0]),
    )


def _library(sources: Sources, index: int) -> str | None:
    """Return the installed package other than JAX that is nearest to the operation ``index`` on its stack;
    None if there is none."""
    for frame in sources.own(index).folded:
        found = PACKAGE.search(frame.file)
        if found is not None and found[1] not in JAX_ROOTS:
            return found[1]
    return None


def _bytes(ops: list[Op], *, inputs: bool) -> int | None:
    """Return the bytes of all operands (if ``inputs``) or of all results of ``ops``, or None if a size is
    unknown. Tokens have no bytes."""
    total = 0
    for op in ops:
        for text in op.inputs if inputs else op.outputs:
            size = 0 if text == TOKEN else types.tensor(text).bytes
            if size is None:
                return None
            total += size
    return total
