"""Map operations to the user's lines and back, through calls of private functions.

JAX lowers a jitted function once and calls it from several places. Its operations then have only the frames
inside it, and those of JAX's own functions (``relu``, ``_where``) none: their lines follow from the calls.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec

from jaxscope.analysis.attribution import NOBODY, Blame, blame
from jaxscope.analysis.stablehlo.locations import MAX_FRAMES, NOWHERE, Locations, Place
from jaxscope.analysis.stablehlo.module import CALLS, NOT_OPERATIONS, Module
from jaxscope.schema.file_owner import STANDING, Standing
from jaxscope.schema.keys import Frame

MAX_SITES = 64  # lines one function is called from
MANY = 10**9  # calls of calls of calls multiply
LOOPS = frozenset({"stablehlo.while", "mhlo.while"})
BRANCHES = frozenset({"stablehlo.case", "stablehlo.if", "mhlo.case", "mhlo.if"})


class Coverage(msgspec.Struct, frozen=True):
    """The number of operations with a known location (``located``), and of those with a user's line
    (``resolved``)."""

    located: int
    resolved: int


class Sources:
    """The origin of each operation of a module. Built once per module."""

    def __init__(self, module: Module, standing: Callable[[str], Standing] = STANDING) -> None:
        self.module = module
        self.locations = Locations(module.locations)
        self.standing = standing
        self._own: dict[str, Blame] = {}
        self._all: dict[tuple[str, int, int | None], tuple[Blame, ...]] = {}
        names = {f.name: i for i, f in enumerate(module.functions)}
        self.called: list[list[int]] = [[] for _ in module.functions]  # function -> operations calling it
        self.callees: list[set[int]] = [set() for _ in module.functions]
        for index, op in enumerate(module.ops):
            if op.name in CALLS and op.callee in names:
                target = names[op.callee]
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
        return self.locations.place(self.module.ops[index].location)

    def own(self, index: int) -> Blame:
        """Return the user's line in the operation's own frames, without those of callers."""
        text = self.module.ops[index].location
        found = self._own.get(text)
        if found is None:
            found = self._own[text] = blame(self.locations.place(text).frames, self.standing)
        return found

    def blames(self, index: int) -> tuple[Blame, ...]:
        """Return every line that causes the operation; several if calls share it."""
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
            # JAX gives what it adds inside a shard_map no frame: it is the shard_map's line then.
            index = op.parent
        for key in climbed:
            self._all[key] = found
        return found

    def frame(self, index: int) -> Frame | None:
        """Return the user's line; None: there is none, or there are several."""
        found = self.blames(index)
        return found[0].frame if len(found) == 1 else None

    def frames(self, index: int) -> tuple[Frame, ...]:
        """Return every user's line of the operation."""
        return tuple(b.frame for b in self.blames(index) if b.frame is not None)

    def in_loop(self, index: int) -> bool:
        """Return whether it runs in every iteration of a loop, here or around a call."""
        return self._looped[index] or self._function_looped[self.module.ops[index].function]

    def in_branch(self, index: int) -> bool:
        """Return whether it runs only if a branch is taken, here or around every call."""
        return self._branched[index] or self._function_branched[self.module.ops[index].function]

    def backward(self, index: int) -> bool | None:
        """Return whether differentiation made the operation; None where calls differ or nothing has a name.

        JAX writes ``transpose(...)`` into the name of the operation or of the call around it.
        """
        name = self.place(index).name
        if name is not None and "transpose(" in name:
            return True
        function = self.module.ops[index].function
        if self.called[function]:
            return self._backward[function]
        return None if name is None else False

    def lines(self) -> dict[tuple[str, int], list[int]]:
        """Return the operations that each line (file, line) caused."""
        found: dict[tuple[str, int], list[int]] = {}
        for index, op in enumerate(self.module.ops):
            if op.name not in NOT_OPERATIONS:
                for key in dict.fromkeys((f.file, f.line) for f in self.frames(index)):
                    found.setdefault(key, []).append(index)
        return found

    def coverage(self) -> Coverage:
        located = resolved = 0
        for index, op in enumerate(self.module.ops):
            if op.name in NOT_OPERATIONS or self.place(index) == NOWHERE:
                continue
            located += 1
            resolved += any(b.frame is not None for b in self.blames(index))
        return Coverage(located, resolved)

    def _through_calls(self, own: Blame, function: int) -> tuple[Blame, ...]:
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
        """Add the frames of the calls of a function; those of its callers are known already."""
        found: dict[Frame | None, Blame] = {}
        for index in self.called[function]:
            for site in self.blames(index):
                found.setdefault(site.frame, site)
                if len(found) >= MAX_SITES:
                    return tuple(found.values())
        return tuple(found.values()) or (NOBODY,)

    def _calling_order(self) -> list[int]:
        """Return every function after all that call it; a cycle (which MLIR forbids) is cut somewhere."""
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
        """Return for each operation whether it is inside one of ``names``, and the same for each function.

        ``calls`` decides for a function from all its calls: any of them, or all.
        """
        inside: list[bool] = []  # an operation's parent stands before it
        ops = self.module.ops
        for op in ops:
            inside.append(op.parent is not None and (inside[op.parent] or ops[op.parent].name in names))
        looped = [False] * len(self.module.functions)
        for f in self.order:
            around = [inside[i] or looped[ops[i].function] for i in self.called[f]]
            looped[f] = bool(around) and calls(around)
        return inside, looped

    def _differentiated(self) -> None:
        """Find for each function whether differentiation created all of its calls."""
        for f in self.order:
            by_call = {self.backward(i) for i in self.called[f]}
            self._backward[f] = by_call.pop() if len(by_call) == 1 else None

    def _times(self) -> list[int]:
        """Count how often each function occurs once every call is written out.

        Loops count once; at most MANY; a private function that nobody calls counts 0.
        """
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
