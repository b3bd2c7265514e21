"""A StableHLO module as data: functions, their arguments and results, and every operation in the order
of the text. Knows nothing of how it is read or of what is looked for in it.
"""

from __future__ import annotations

import msgspec

CONSTANTS = frozenset({"stablehlo.constant", "mhlo.constant"})
NOT_OPERATIONS = frozenset({"func.return", "stablehlo.return", "sdy.return", "mhlo.return"})
CALLS = frozenset({"func.call", "call"})


class Problem(msgspec.Struct, frozen=True):
    """A part that could not be read, at a 1-based line of the text."""

    line: int
    text: str


class Op(msgspec.Struct, frozen=True, gc=False):
    """One operation.

    Attributes:
      line: its line in the text.
      function: position of its function in ``Module.functions``.
      block: number of the region that it is in.
      parent: position of the operation that has this region; None: the function itself.
      results: how many results it has.
      operands: positions of the operations that produce its operands; -1 - k is argument k of the function.
        Arguments of regions are left out.
      inputs, outputs: types, as text.
      detail: the rest of the line, with each value written ``%``.
      location: the text in ``loc(...)``.
      callee: the called function, or the target of a custom call.
      picks: of a return: which result of the operation each operand is; empty where each is the first.
    """

    name: str
    line: int
    function: int
    block: int
    parent: int | None
    results: int
    operands: tuple[int, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    detail: str
    location: str
    callee: str | None = None
    picks: tuple[int, ...] = ()


class Argument(msgspec.Struct, frozen=True):
    """An argument of a function. ``name`` is its location: the argument's path as JAX prints it."""

    type: str
    name: str | None = None
    attributes: dict[str, str] = {}


class Result(msgspec.Struct, frozen=True):
    type: str
    attributes: dict[str, str] = {}


class Function(msgspec.Struct, frozen=True):
    """A function of a module.

    Attributes:
      line: its line in the text.
      first, end: its operations are ``Module.ops[first:end]``.
    """

    name: str
    public: bool
    line: int
    first: int
    end: int
    arguments: tuple[Argument, ...] = ()
    results: tuple[Result, ...] = ()


class Module(msgspec.Struct, frozen=True):
    """A StableHLO module.

    Attributes:
      ops: the operations of all functions.
      locations: the ``#loc`` lines, by name.
      symbols: operations of the module itself that are no functions (``sdy.mesh @mesh``), by symbol.
      problems: the lines that could not be read.
    """

    name: str | None = None
    attributes: dict[str, str] = {}
    functions: tuple[Function, ...] = ()
    ops: tuple[Op, ...] = ()
    locations: dict[str, str] = {}
    symbols: dict[str, str] = {}
    problems: tuple[Problem, ...] = ()

    def main(self) -> Function | None:
        """Return the entry: ``@main``, else the only public function."""
        named = [f for f in self.functions if f.name == "main"]
        public = named or [f for f in self.functions if f.public]
        return public[0] if len(public) == 1 or named else None
