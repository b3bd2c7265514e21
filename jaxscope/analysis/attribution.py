"""Find the frame of a traceback to which an operation is attributed: the innermost line of the user's own
code.

A frame is a line of Python code (``schema.keys.Frame``), read from a Python traceback, from StableHLO or from
HLO. The module ``schema.file_owner`` decides whether a file belongs to the user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from jaxscope.schema.file_owner import STANDING, Standing, standing_of
from jaxscope.schema.keys import Frame


class Blame(msgspec.Struct, frozen=True):
    """The frame to which an operation is attributed, usually one of the user's code, and the frames around it
    on the stack.

    Attributes:
      frame: the frame; None: all frames are of known libraries, or there are no frames.
      folded: the frames between ``frame`` and the operation, all of installed packages or known libraries,
        innermost first. All frames of the stack if ``frame`` is None.
      callers: the frames that called ``frame``, directly or not, and have the same kind of owner (usually the
        user), innermost first.
    """

    frame: Frame | None = None
    folded: tuple[Frame, ...] = ()
    callers: tuple[Frame, ...] = ()


NOBODY = Blame()


def blame(frames: Iterable[Frame], standing: Callable[[str], Standing] = STANDING) -> Blame:
    """Return the frame to which an operation is attributed: the innermost frame in the user's code. If there
    is none, it is the innermost frame in an installed package that is no known library (JAX, ...). If there
    is none either, ``frame`` of the result is None.

    Args:
      frames: the frames of the operation's stack, innermost first.
      standing: a function that takes a file name and returns the owner of the file: the user, an installed
        package or a known library.
    """
    ranked = [(standing_of(f, standing), f) for f in frames]
    if not ranked:
        return NOBODY
    best = min(rank for rank, _ in ranked)
    if best == Standing.LIBRARY:
        return Blame(folded=tuple(f for _, f in ranked))
    at = next(i for i, (rank, _) in enumerate(ranked) if rank == best)
    return Blame(
        frame=ranked[at][1],
        folded=tuple(f for _, f in ranked[:at]),
        callers=tuple(f for rank, f in ranked[at + 1 :] if rank == best),
    )
