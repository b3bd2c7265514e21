"""How a function of JAX's was left of whose end nothing tells: it returned, or it raised.

A local that only its frame holds dies when the frame returns, while the caller is the running frame;
an exception's traceback keeps it longer, and then another frame runs. Keeps the local, and the frame,
no moment longer.
"""

from __future__ import annotations

import functools
import itertools
import operator
import sys
import weakref
from collections import defaultdict
from types import CodeType, FrameType
from typing import Any, NamedTuple


class Ending(NamedTuple):
    """One call that is watched."""

    ref: weakref.ref[Any]
    caller: CodeType


class Endings:
    """``watch`` a call, and ask ``of`` it later."""

    def __init__(self) -> None:
        # What runs when the local dies is C code alone: a Ctrl-C that Python code received there
        # would be printed as "Exception ignored in" and lost to the program.
        codes = map(operator.attrgetter("f_code"), map(sys._getframe, itertools.repeat(0)))
        self._left: defaultdict[weakref.ref[Any], CodeType] = defaultdict(functools.partial(next, codes))

    def watch(self, frame: FrameType, local: Any) -> Ending | None:
        """``local`` is held by ``frame`` alone. None: this one cannot be watched."""
        if local is None or frame.f_back is None:
            return None
        try:
            ref = weakref.ref(local, self._left.__getitem__)
            hash(ref)  # while it lives; a dead one has the hash of then
        except TypeError:
            return None
        return Ending(ref, frame.f_back.f_code)

    def of(self, ending: Ending) -> bool | None:
        """Did the call return? False: it raised. None: it runs, or its exception is still alive."""
        code = self._left.pop(ending.ref, None)
        return None if code is None else code is ending.caller
