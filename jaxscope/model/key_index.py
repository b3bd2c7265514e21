"""Index the cache keys of a function, to find earlier keys with the same shapes or the same static values.

A new key is compared with such keys to explain a cache miss. The index avoids a scan of thousands of keys.
There is one index for each function in each process.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Sequence

from jaxscope.analysis.keys import Facts, flatten
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.schema.keys import Key

Fits = Callable[[Compilation], bool]
LOOK_AT = 2_048  # number of keys that are tried for a match: the cost must not be quadratic in the keys


class KeyIndex:
    """The recorded cache keys of one function in one process.

    A position is the index of a key in the order in which the keys were recorded. Shapes and static values
    are compared by hash: a collision only adds a key to compare with.

    Attributes:
      compilations: the call of each key.
      facts: the flattened form of each key.
      positions: {number of the call: position of its key}.
      entries: the kinds of calls that the keys are from: call, aot, transform, nested.
      shapes, statics: for each key, a hash of the shapes, and a hash of the static values.
      by_shapes, by_static: the positions of the keys by their hash: {hash: [position, ...]}.
    """

    def __init__(self) -> None:
        self.compilations: list[Compilation] = []
        self.facts: list[Facts] = []
        self.positions: dict[int, int] = {}
        self.entries: set[str] = set()
        self.shapes: list[int] = []
        self.statics: list[int] = []
        self.by_shapes: dict[int, list[int]] = {}
        self.by_static: dict[int, list[int]] = {}

    def add(self, c: Compilation, key: Key, facts: Facts) -> None:
        """Add ``key``, the cache key of call ``c``, to the index. ``facts`` is the flattened form of this
        key."""
        at = len(self.compilations)
        self.compilations.append(c)
        self.facts.append(facts)
        self.positions[c.call] = at
        self.entries.add(c.entry)
        self.shapes.append(shapes(key))
        self.statics.append(statics(key))
        self.by_shapes.setdefault(self.shapes[at], []).append(at)
        self.by_static.setdefault(self.statics[at], []).append(at)

    def before(self, call: int) -> int:
        """Return the position of the key of the call with the number ``call``, which is the number of earlier
        keys. If the index does not have the call, return how many of its calls have smaller numbers."""
        position = self.positions.get(call)
        return sum(other < call for other in self.positions) if position is None else position

    def latest(self, end: int, most: int, fits: Fits | None) -> list[int]:
        """Return the positions (indices) of the latest keys before position ``end``, at most ``most``, the
        latest first. If ``fits`` is given, only keys whose compilation ``fits`` accepts are returned, of the
        latest LOOK_AT keys."""
        return _latest(range(end), most, self._at(range(end), fits))

    def hashes(self, call: int, key: Key) -> tuple[int, int]:
        """Return (hash of the shapes, hash of the static values) of ``key``, the cache key of the call with
        the number ``call``. The index does not need to have the call."""
        at = self.positions.get(call)
        return (shapes(key), statics(key)) if at is None else (self.shapes[at], self.statics[at])

    def alike(self, hashes: tuple[int, int], end: int, most: int, fits: Fits | None) -> set[int]:
        """Return the positions (indices) of the latest keys that have the same shapes or the same static
        values as a new key.

        Args:
          hashes: (hash of the shapes, hash of the static values) of the new key.
          end: only keys before this position are returned.
          most: the most keys that are returned for equal shapes, and again for equal static values.
          fits: returns whether the compilation of a key is wanted; None: all are.
        """
        found: set[int] = set()
        if end == 0:
            return found
        for known in (self.by_shapes.get(hashes[0], []), self.by_static.get(hashes[1], [])):
            before = range(bisect_left(known, end))
            found.update(known[n] for n in _latest(before, most, self._at(known, fits)))
        return found

    def same_shapes(self, key: Key, end: int, fits: Fits) -> int | None:
        """Return the position (index) of the latest key before position ``end`` with the shapes of ``key``.
        Only keys whose compilation ``fits`` accepts count, and only the latest LOOK_AT keys with these shapes
        are tried. None if there is none."""
        known = self.by_shapes.get(shapes(key), [])
        before = range(bisect_left(known, end))
        found = _latest(before, 1, self._at(known, fits))
        return known[found[0]] if found else None

    def _at(self, positions: Sequence[int], fits: Fits | None) -> Callable[[int], bool] | None:
        """Return a function that takes an index into ``positions`` and returns whether ``fits`` accepts the
        compilation of this key; None if ``fits`` is None."""
        return None if fits is None else lambda n: fits(self.compilations[positions[n]])

    def with_shapes(self, pairs: Sequence[tuple[str, object]]) -> list[int]:
        """Return the positions (indices), in ascending order, of the keys whose arguments have the paths and
        shapes ``pairs``: (path, shape) of each argument. At most the latest LOOK_AT are returned."""
        return self.by_shapes.get(hash(tuple(pairs)), [])[-LOOK_AT:]


def _latest(numbers: range, most: int, fits: Callable[[int], bool] | None) -> list[int]:
    """Return at most ``most`` of ``numbers``, the last first. If ``fits`` is given, return only numbers that
    ``fits`` accepts, and try only the last LOOK_AT of ``numbers``."""
    if fits is None:
        return list(reversed(numbers[-most:]))
    found: list[int] = []
    for at in reversed(numbers[-LOOK_AT:]):
        if fits(at):
            found.append(at)
            if len(found) == most:
                break
    return found


class _IndicesByProcess:
    """The indices of one function, one for each process (``by_process``). ``taken`` is the number of the
    function's compilations that they contain, ``last`` the latest of them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()  # the terminal view reads from two threads
        self.taken = 0
        self.last: Compilation | None = None
        self.by_process: dict[str, KeyIndex] = {}


def of(run: Run, c: Compilation) -> KeyIndex:
    """Return the index of the cache keys of the function of ``c`` in the process of ``c``. It has all keys
    recorded so far, including that of ``c`` and later ones."""
    known = run.earlier.get(c.function.id) or run.earlier.setdefault(c.function.id, _IndicesByProcess())
    assert isinstance(known, _IndicesByProcess)
    own = c.function.compilations  # in order of time
    if known.taken == len(own) and own[-1] is known.last:
        return known.by_process.get(c.process.id) or KeyIndex()
    with known.lock:
        # Logs of several processes are read one after the other: a new key may be earlier than known ones.
        if known.taken and (len(own) < known.taken or own[known.taken - 1] is not known.last):
            known.taken, known.last, known.by_process = 0, None, {}
        while known.taken < len(own):
            last = own[known.taken]
            if last.key is not None:
                earlier = known.by_process.setdefault(last.process.id, KeyIndex())
                earlier.add(last, last.key, facts_of(run, last))
            known.last = last
            known.taken += 1  # last: from here on, another thread reads the index without the lock
        return known.by_process.get(c.process.id) or KeyIndex()


def facts_of(run: Run, c: Compilation) -> Facts:
    """Return the cache key of ``c`` in flattened form, with the shardings and settings themselves in place of
    their indices and ids. The key of ``c`` must have been recorded. The result is cached."""
    key = c.key
    assert key is not None
    settings = run.settings(c.process, key.context)
    known = run.facts.get(id(key))  # equal keys are one object (model.interning)
    if known is None or known[0] is not key or known[1] is not settings:
        contexts = {key.context: settings} if key.context is not None and settings is not None else None
        known = run.facts[id(key)] = key, settings, flatten(key, contexts)
        run.shared.of(known[2])
    return known[2]


def shapes(key: Key) -> int:
    """Return a hash of the paths and shapes of the arguments in ``key``, to find keys with equal shapes."""
    return hash(tuple((leaf.path, leaf.shape) for leaf in key.arguments))


def statics(key: Key) -> int:
    """Return a hash of the paths, texts and hashes of the static values in ``key``, to find keys with equal
    static values."""
    return hash(tuple((item.path, item.repr, item.hash) for item in key.static))
