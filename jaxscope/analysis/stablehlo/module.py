"""A StableHLO module as data: functions, their arguments and results, and every operation in the order of the
text.

``reader`` creates these objects from a text, and the other modules of the package analyze them.
"""

from __future__ import annotations

import functools
import re

import msgspec

CONSTANTS = frozenset({"stablehlo.constant", "mhlo.constant"})
NOT_OPERATIONS = frozenset({"func.return", "stablehlo.return", "sdy.return", "mhlo.return"})
CALLS = frozenset({"func.call", "call"})
INTEGER = re.compile(r"dense<(-?\d{1,18})>")  # in Op.detail of a constant whose elements are all this integer
ZERO = re.compile(r"dense<(0|-?0\.0+[eE]\+00|false)>")  # and of one with only zeros
DIMS = re.compile(r"dims = \[([\d, ]*)\]")  # and of a transpose or a broadcast
EQUAL = re.compile(r"\bEQ\b")  # and of a comparison
SLICE_SIZES = re.compile(r"slice_sizes = array<i64: ([\d, ]*)>")  # and of a gather
SUMMED = re.compile(r"applies stablehlo\.add across dimensions = \[([\d, ]*)\]")  # and of a reduce
SCALES = frozenset({"stablehlo.multiply", "stablehlo.divide"})
PRODUCTS = frozenset({"stablehlo.dot_general", "stablehlo.dot", "stablehlo.convolution"})


class Problem(msgspec.Struct, frozen=True):
    """A part of a StableHLO text that could not be read. ``line`` is its line (from 1; 0: unknown), ``text``
    the reason."""

    line: int
    text: str


class Op(msgspec.Struct, frozen=True, gc=False):
    """One operation of a StableHLO module.

    Attributes:
      name: the name with its dialect: ``stablehlo.add``.
      line: the line in the text, counted from 1.
      function: index of the function that contains the operation, in ``Module.functions``.
      block: number of the region that contains the operation. Different regions of the module have different
        numbers.
      parent: index in ``Module.ops`` of the operation that has this region; None if the region is the
        function's body.
      results: number of results.
      operands: for each operand, the index in ``Module.ops`` of the operation that computes it, or -1 - k for
        argument k of the function. An operand that is an argument of a region is left out. If a while loop
        does not change this argument, its value before the loop is listed instead.
      inputs, outputs: types of all operands and of all results, as text.
      detail: the text after the operation's name, without types and location, with ``%`` for each value's
        name.
      location: the text in ``loc(...)``; empty: there is none.
      callee: the called function, or the target of a custom call; None if the operation calls nothing.
      places: the position of each of ``operands`` among all operands, if some are left out; else empty.
      picks: for each of ``operands``, its number among the results of the operation that computes it: 2 for
        ``%5#2``, 0 for ``%5``. Empty: all are 0.
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
    places: tuple[int, ...] = ()


class Argument(msgspec.Struct, frozen=True):
    """An argument of a function in a StableHLO module.

    Attributes:
      type: the MLIR type as text: ``tensor<4xf32>``.
      name: the path of the argument as JAX writes it into the argument's location; None: there is none.
      attributes: name of an attribute -> its text.
    """

    type: str
    name: str | None = None
    attributes: dict[str, str] = {}


class Result(msgspec.Struct, frozen=True):
    """A result of a function in a StableHLO module: its MLIR type as text, and its attributes (name ->
    text)."""

    type: str
    attributes: dict[str, str] = {}


class Function(msgspec.Struct, frozen=True):
    """A function of a StableHLO module.

    Attributes:
      name: the name without ``@``.
      public: whether the function is not marked as private.
      line: the line in the text, counted from 1.
      first, end: the function's operations are ``Module.ops[first:end]``.
    """

    name: str
    public: bool
    line: int
    first: int
    end: int
    arguments: tuple[Argument, ...] = ()
    results: tuple[Result, ...] = ()


class Module(msgspec.Struct, frozen=True, dict=True):
    """A parsed StableHLO module.

    Attributes:
      name: the name: ``jit_step``; None: the text has none.
      attributes: name of an attribute of the module -> its text.
      functions: the functions, in the order of the text.
      ops: the operations of all functions, in the order of the text.
      locations: ``#loc`` name -> the text of its location.
      symbols: name -> text, for what the module defines besides functions and locations: ``@mesh`` -> the
        line that defines the mesh, ``#map`` -> the attribute for which the name stands.
      problems: the lines that could not be read.
    """

    name: str | None = None
    attributes: dict[str, str] = {}
    functions: tuple[Function, ...] = ()
    ops: tuple[Op, ...] = ()
    locations: dict[str, str] = {}
    symbols: dict[str, str] = {}
    problems: tuple[Problem, ...] = ()

    @functools.cached_property
    def _by_name(self) -> dict[str | None, int]:
        return {f.name: k for k, f in enumerate(self.functions)}

    def callee(self, op: Op) -> int | None:
        """Return the index of the function of the module that ``op`` calls, or None if it calls none."""
        return self._by_name.get(op.callee) if op.name in CALLS else None

    def main(self) -> Function | None:
        """Return the function with which the program begins: ``@main``, else the only public function, else
        None."""
        named = [f for f in self.functions if f.name == "main"]
        public = named or [f for f in self.functions if f.public]
        return public[0] if len(public) == 1 or named else None
