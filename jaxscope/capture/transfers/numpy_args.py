"""NumPy arguments of a watched function whose calls do not all bring the same bytes: counted call by call.

Where they do, no call is looked at: what one brings, times the calls, is known from the key (model.transfers).
Where they do not, one leaf is looked for that tells how much a call brings (in the batch, mostly).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from jaxscope.capture import shield
from jaxscope.capture.count import Count
from jaxscope.log.writer import Writer
from jaxscope.schema.events import Brought

NUMPY = (np.ndarray, np.generic)
WIDE = 8  # bytes: what JAX may make smaller
MOST = 64  # different sizes; calls remembered

Slot = int | str  # an argument by its position or keyword
Sign = tuple[type, int | None]  # of a leaf: its type, and its bytes where it is NumPy's
Leaves = dict[tuple[Slot, Any], Sign]  # by slot and JAX's key path in it


class Arguments:
    """What the calls of one watched function bring.

    Attributes:
      each: looks at the arguments of a call that is over; None: all calls so far brought the same.
      counts: calls by the bytes that one of them brought, once ``each`` looks.
    """

    def __init__(self, writer: Writer, function: str) -> None:
        from jax import tree_util

        self._tree = tree_util
        self._writer = writer
        self._function = function
        self._size: int | None = None  # bytes that each call so far brought
        self._seen: list[tuple[Leaves, int]] = []  # calls that left the fast path, and their bytes
        self._slots: set[Slot] = set()  # where they had something of NumPy's
        self._telling: tuple[Slot, list[Callable[[Any], Any]], dict[Sign, Count]] | None = None
        self._lost = False
        self.counts: dict[int, Count] = {}
        self.each: Callable[[tuple[Any, ...], dict[str, Any]], None] | None = None

    def missed(self, given: tuple[Any, Any], leaves: int, calls: int) -> None:
        """A call, the ``calls``-th, with arguments and keywords ``given``, left the fast path.

        ``leaves``: NumPy arrays in its key.
        """
        args, kwargs = given
        if self._lost or calls == 0:
            return  # 0: jit is not in what is watched but around it
        if args is None or kwargs is None:
            self._lose()
            return
        found, size = self._read(_slots(args, kwargs))
        if sum(_is_numpy(sign) for sign in found.values()) != leaves or (self._size is None and calls > 1):
            self._lose()  # something static is NumPy's, or calls were served from before the recording
            return
        self._slots |= {slot for (slot, _), sign in found.items() if _is_numpy(sign)}
        if len(self._seen) < MOST:
            self._seen.append((found, size))
        self._telling = self._teller() if len(self._seen) < MOST else None
        if self._size is None:
            self._size = size
        elif self.each is None and size != self._size:
            self._of(self._size).grow(calls - 1)
            self._of(size).add()
            self.each = self._look

    def _look(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        try:
            if self._telling is not None:
                slot, path, counts = self._telling
                try:
                    leaf = args[slot] if type(slot) is int else kwargs[slot]  # type: ignore[index]
                    for get in path:
                        leaf = get(leaf)
                    counts[type(leaf), leaf.nbytes if isinstance(leaf, NUMPY) else None].add()
                    return
                except Exception:  # not there in this call, or nothing that is known
                    pass
            if not self._lost:
                given = _slots(args, kwargs)
                self._of(self._read({s: given[s] for s in self._slots if s in given})[1]).add()
        except Exception as e:
            self._lose()
            shield.switch_off("numpy_arguments", f"{type(e).__name__}: {str(e)[:300]}")

    def _teller(self) -> tuple[Slot, list[Callable[[Any], Any]], dict[Sign, Count]] | None:
        """A leaf that was never the same in two calls that brought different bytes."""
        for place in self._seen[-1][0]:
            sizes: dict[Sign, int] = {}
            path = _getters(place[1])
            known = [(leaves[place], size) for leaves, size in self._seen if place in leaves]
            if path is not None and all(sizes.setdefault(sign, size) == size for sign, size in known):
                return place[0], path, {sign: self._of(size) for sign, size in sizes.items()}
        return None

    def _read(self, given: dict[Slot, Any]) -> tuple[Leaves, int]:
        """All leaves, and the bytes of what JAX makes of NumPy's."""
        found, size = {}, 0
        for slot, value in given.items():
            for path, leaf in self._tree.tree_flatten_with_path(value)[0]:
                numpy = isinstance(leaf, NUMPY)
                found[slot, path] = type(leaf), leaf.nbytes if numpy else None
                size += _bytes(leaf) if numpy else 0
        return found, size

    def _of(self, size: int) -> Count:
        count = self.counts.get(size)
        if count is None:
            if len(self.counts) >= MOST:
                raise ValueError("calls bring something else each time")
            count = self.counts[size] = Count(self._writer, lambda n, cell: self._event(size, n, cell))
        return count

    def _event(self, size: int, count: int, cell: int | None) -> Brought:
        return Brought(function=self._function, bytes=size, count=count, cell=cell)

    def _lose(self) -> None:
        if not self._lost:
            self._lost, self._telling = True, None
            self._writer.emit(Brought(function=self._function, lost=True))


def _slots(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[Slot, Any]:
    found: dict[Slot, Any] = dict(enumerate(args))
    found.update(kwargs)
    return found


def _is_numpy(sign: Sign) -> bool:
    return issubclass(sign[0], NUMPY)


def _bytes(leaf: Any) -> int:
    """As JAX has it: without 64 bits, half of them."""
    from jax import dtypes

    if leaf.itemsize < WIDE:
        return int(leaf.nbytes)
    return int(leaf.size) * int(dtypes.canonicalize_dtype(leaf.dtype).itemsize)


def _getters(path: Iterable[Any]) -> list[Callable[[Any], Any]] | None:
    """How to get at the leaf at JAX's key path; None: only its container knows."""
    from jax import tree_util as tree

    found: list[Callable[[Any], Any]] = []
    for key in path:
        if isinstance(key, tree.DictKey):
            found.append(operator.itemgetter(key.key))
        elif isinstance(key, tree.SequenceKey):
            found.append(operator.itemgetter(key.idx))
        elif isinstance(key, tree.GetAttrKey):
            found.append(operator.attrgetter(key.name))
        else:
            return None
    return found
