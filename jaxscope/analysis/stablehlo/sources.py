"""Find the lines of the user's code that cause an operation of a lowered program, and the operations that a
line causes.

JAX lowers a jitted function once and calls it from several places. The operations of such a function have
only the frames inside the function. The operations of JAX's own functions (``relu``, ``_where``) have no
frame of the user at all. In both cases the lines follow from the calls.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping

from jaxscope.analysis.attribution import NOBODY, Blame, blame
from jaxscope.analysis.stablehlo.locations import MAX_FRAMES, Locations, Place
from jaxscope.analysis.stablehlo.module import NOT_OPERATIONS, Module
from jaxscope.schema.file_owner import STANDING, Standing
from jaxscope.schema.keys import Frame
from jaxscope.schema.libraries import JAX_ROOTS

LINES = 3
MAX_SITES = 64  # the most lines of calls that are kept for one function
MANY = 10**9  # the highest count of a function's copies, because nested calls multiply
LOOPS = frozenset({"stablehlo.while", "mhlo.while"})
# Files of installed packages, and those of JAX among them
LIBRARIES = re.compile(r"[\\/](?:site|dist)-packages[\\/]")
JAX_FILES = re.compile(LIBRARIES.pattern + rf"(?:{'|'.join(sorted(JAX_ROOTS))})[\\/]")
BRANCHES = frozenset({"stablehlo.case", "stablehlo.if", "mhlo.case", "mhlo.if"})


class Sources:
    """The lines of the user's code that cause each operation of a module, and the calls between the module's
    functions.

    A line of an installed package that is not a known library counts as the user's if no line of the user is
    known.

    In the methods, ``index`` is the index of the operation in ``Module.ops``.

    Attributes:
      called: for each function, the indices of the operations that call it.
      callees: for each function, the indices of the functions that it calls.
      order: indices of the functions, each after all functions that call it.
      times: for each function, how many copies of it the program has once all calls are inlined.

    Args:
      standing: the function that returns the owner of a file by its name: the user, an installed package or a
        library.
    """

    def __init__(self, module: Module, standing: Callable[[str], Standing] = STANDING) -> None:
        self.module = module
        self.locations = Locations(module.locations)
        self.standing = standing
        self._own: dict[str, Blame] = {}
        self._all: dict[tuple[str, int, int | None], tuple[Blame, ...]] = {}
        self.called: list[list[int]] = [[] for _ in module.functions]
        self.callees: list[set[int]] = [set() for _ in module.functions]
        for index, op in enumerate(module.ops):
            target = module.callee(op)
            if target is not None:
                self.called[target].append(index)
                self.callees[op.function].add(target)
        self.order = self._calling_order()
        self.times = self._times()
        self._looped, self._function_looped = self._inside(LOOPS, any)
        self._branched, self._function_branched = self._inside(BRANCHES, all)
        self._backward: list[bool | None] = [None] * len(module.functions)
        self._differentiated()
        self._sites: list[tuple[Blame, ...]] = [()] * len(module.functions)
        for f in self.order:
            self._sites[f] = self._sites_of(f)

    def place(self, index: int) -> Place:
        """Return what the location of the operation ``module.ops[index]`` says: the name that JAX gives the
        operation, and the Python frames."""
        return self.locations.place(self.module.ops[index].location)

    def own(self, index: int) -> Blame:
        """Return the line of the user's code in the location of the operation ``module.ops[index]`` itself;
        ``frame`` is None if there is no such line. Lines that call the function around the operation do not
        count."""
        text = self.module.ops[index].location
        found = self._own.get(text)
        if found is None:
            found = self._own[text] = blame(self.locations.place(text).frames, self.standing)
        return found

    def blames(self, index: int) -> tuple[Blame, ...]:
        """Return every line of the user's code that causes the operation ``module.ops[index]``. There are
        several if the function that contains the operation is called from several lines. If none is known,
        return one ``Blame`` whose ``frame`` is None."""
        climbed = []
        while True:
            op = self.module.ops[index]
            own = self.own(index)
            outward = own.frame is None and op.parent is not None
            key = (op.location, op.function, op.parent if outward else None)
            found = self._all.get(key)
            if found is not None:
                break
            climbed.append(key)
            if not outward or op.parent is None:
                found = self._through_calls(own, op.function)
                break
            # Operations that JAX adds inside a shard_map have no frame. They get the line of the shard_map.
            index = op.parent
        for key in climbed:
            self._all[key] = found
        return found

    def frame(self, index: int) -> Frame | None:
        """Return the line of the user's code that causes the operation ``module.ops[index]``. Return None if
        there is no such line, or if there are several."""
        found = self.blames(index)
        return found[0].frame if len(found) == 1 else None

    def frames(self, index: int) -> tuple[Frame, ...]:
        """Return all lines of the user's code that cause the operation ``module.ops[index]``."""
        return tuple(b.frame for b in self.blames(index) if b.frame is not None)

    def costliest_lines(self, counts: Mapping[int, int]) -> tuple[Frame, ...]:
        """Return the LINES (3) lines of the user's code with the largest sums of ``counts``: index of an
        operation -> number."""
        by_line = Counter[Frame]()
        for index, n in counts.items():
            frame = self.frame(index)
            if frame is not None and n:
                by_line[frame] += n
        return tuple(frame for frame, _ in by_line.most_common(LINES))

    def in_library(self, index: int) -> bool:
        """Return whether an installed package other than JAX is between the user's code and the operation
        ``module.ops[index]`` on one of its stacks."""
        folded = [frame for one in self.blames(index) for frame in one.folded]
        return any(LIBRARIES.search(f.file) and not JAX_FILES.search(f.file) for f in folded)

    def in_loop(self, index: int) -> bool:
        """Return whether the operation ``module.ops[index]`` is in a loop of the program. The loop may be in
        the function that contains the operation, or around a call of that function."""
        return self._looped[index] or self._function_looped[self.module.ops[index].function]

    def in_branch(self, index: int) -> bool:
        """Return whether the operation ``module.ops[index]`` is in a branch of a conditional, and so may not
        run. The conditional may be in the function that contains the operation, or around every call of that
        function."""
        return self._branched[index] or self._function_branched[self.module.ops[index].function]

    def backward(self, index: int) -> bool | None:
        """Return whether differentiation created the operation ``module.ops[index]``: JAX wrote
        ``transpose(...)`` into its name, or into the names of all calls of the function that contains it.
        Return None if only some calls have such a name, or if there are no names."""
        name = self.place(index).name
        if name is not None and "transpose(" in name:
            return True
        function = self.module.ops[index].function
        if self.called[function]:
            return self._backward[function]
        return None if name is None else False

    def lines(self) -> dict[tuple[str, int], list[int]]:
        """Return the operations that each line of the user's code causes: (file, line) -> indices in
        ``Module.ops``."""
        found: dict[tuple[str, int], list[int]] = {}
        for index, op in enumerate(self.module.ops):
            if op.name not in NOT_OPERATIONS:
                for key in dict.fromkeys((f.file, f.line) for f in self.frames(index)):
                    found.setdefault(key, []).append(index)
        return found

    def _through_calls(self, own: Blame, function: int) -> tuple[Blame, ...]:
        """Return the lines that cause an operation of the function ``module.functions[function]``: the lines
        that call the function if their owner is nearer to the user (``Standing``) than that of ``own``, the
        line in the operation's location; else ``own`` alone."""
        if own.frame is not None and self.standing(own.frame.file) == Standing.USER:
            return (own,)
        better = [
            Blame(site.frame, (own.folded + site.folded)[:MAX_FRAMES], site.callers)
            for site in self._sites[function]
            if site.frame is not None
            and (own.frame is None or self.standing(site.frame.file) < self.standing(own.frame.file))
        ]
        return tuple(better) or (own,)

    def _sites_of(self, function: int) -> tuple[Blame, ...]:
        """Return the lines of the user's code that call ``module.functions[function]``, directly or through
        other functions of the module; at most MAX_SITES (64). If there are none, return one ``Blame`` whose
        ``frame`` is None."""
        found: dict[Frame | None, Blame] = {}
        for index in self.called[function]:
            for site in self.blames(index):
                found.setdefault(site.frame, site)
                if len(found) >= MAX_SITES:
                    return tuple(found.values())
        return tuple(found.values()) or (NOBODY,)

    def _calling_order(self) -> list[int]:
        """Return the indices of all functions, each after all functions that call it. In a cycle of calls,
        which MLIR forbids, one function is placed before its caller."""
        waiting = [len({self.module.ops[i].function for i in calls}) for calls in self.called]
        ready = [f for f, n in enumerate(waiting) if n == 0]
        order: list[int] = []
        seen = set(ready)
        left = iter(range(len(waiting)))
        while len(order) < len(waiting):
            if not ready:
                stuck = next(f for f in left if f not in seen)
                seen.add(stuck)
                ready.append(stuck)
            f = ready.pop()
            order.append(f)
            for callee in self.callees[f]:
                waiting[callee] -= 1
                if waiting[callee] == 0 and callee not in seen:
                    seen.add(callee)
                    ready.append(callee)
        return order

    def _inside(
        self, names: Collection[str], calls: Callable[[list[bool]], bool]
    ) -> tuple[list[bool], list[bool]]:
        """Return (operations, functions), two lists of bools: for each operation and for each function of the
        module, whether it is inside an operation with one of these ``names``.

        Args:
          names: the names of the operations to look for: loops, or conditionals.
          calls: ``any`` if a function is inside when one of its calls is inside; ``all`` if every call must
            be.
        """
        inside: list[bool] = []  # the parent of an operation comes before it in ops
        ops = self.module.ops
        for op in ops:
            inside.append(op.parent is not None and (inside[op.parent] or ops[op.parent].name in names))
        looped = [False] * len(self.module.functions)
        for f in self.order:
            around = [inside[i] or looped[ops[i].function] for i in self.called[f]]
            looped[f] = bool(around) and calls(around)
        return inside, looped

    def _differentiated(self) -> None:
        """Fill ``_backward`` for each function: True if differentiation created all calls of the function,
        False if it created none of them, None if it created some or if this is unknown."""
        for f in self.order:
            by_call = {self.backward(i) for i in self.called[f]}
            self._backward[f] = by_call.pop() if len(by_call) == 1 else None

    def _times(self) -> list[int]:
        """Return how many copies of each function the program has once all calls are inlined, at most
        ``MANY`` (a billion). A call in a loop counts once. A private function without calls has 0
        copies."""
        times = [0] * len(self.module.functions)
        main = self.module.main()
        for f in self.order:
            function = self.module.functions[f]
            if function is main or (main is None and function.public):
                times[f] = 1
            for index in self.called[f]:
                caller = self.module.ops[index].function
                times[f] = min(MANY, times[f] + (times[caller] if caller != f else 0))
        return times
