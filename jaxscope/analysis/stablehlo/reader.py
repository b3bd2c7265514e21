"""Parse StableHLO text to a ``Module``, one line at a time. A line that cannot be read becomes a ``Problem``.

The format is that of MLIR's printer, generic and pretty forms mixed, with ``#loc`` names for locations.
"""

from __future__ import annotations

import re

import msgspec

from jaxscope.analysis.stablehlo import carried, lexing
from jaxscope.analysis.stablehlo.module import NOT_OPERATIONS, Argument, Function, Module, Op, Problem, Result

MAX_PROBLEMS = 100
MAX_OPEN = 1000  # regions inside regions
SYMBOL = re.compile(r'@(?:"((?:[^"\\]++|\\.)*+)"?|([\w$.-]+))')
EDGES = ("cond {", "do {", "else {")
REDUCER = "reducer("
FULL_NAMES = {"call": "func.call", "return": "func.return", "constant": "func.constant"}


class _Open:
    """A region of an operation or function (the text between braces) that is being read.

    Attributes:
      block: number of the region, as in ``Op.block``.
      owner: index of the operation that has the region; None: the region is a function's body.
      last: index of the last operation that was read in the region; None if none was read so far.
    """

    __slots__ = ("block", "last", "owner")

    def __init__(self, owner: int | None, block: int) -> None:
        self.owner, self.block = owner, block
        self.last: int | None = None


class _Reader:
    """Parses one StableHLO text. ``read`` may be called once.

    Attributes:
      names: name of a value in the function that is being read, such as ``%5`` -> the value as in
        ``Op.operands``; None for an argument of a region.
      open: the regions that are being read, outermost first. Empty outside of functions.
      modules: number of open braces outside of functions.
      signatures: text of an operation's types -> its parts, as ``lexing.types`` returns them.
      resources: whether the line is between ``{-#`` and ``#-}``, at the end of the text.
      unchanged: the result of ``carried.unchanged``.
    """

    def __init__(self) -> None:
        self.name: str | None = None
        self.attributes: dict[str, str] = {}
        self.functions: list[Function] = []
        self.ops: list[Op] = []
        self.aliases: dict[str, str] = {}
        self.symbols: dict[str, str] = {}
        self.problems: list[Problem] = []
        self.names: dict[str, int | None] = {}
        self.open: list[_Open] = []
        self.blocks = 0
        self.modules = 0
        self.interned: dict[str, str] = {}
        self.signatures: dict[str, tuple[tuple[str, ...] | None, tuple[str, ...]]] = {}
        self.resources = False
        self.unchanged: dict[int, frozenset[str]] = {}

    def problem(self, number: int, text: str) -> None:
        """Add a problem on line ``number``, unless there are MAX_PROBLEMS (100) already."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(number, text))

    def read(self, text: str) -> Module:
        """Parse the text and return the module. What cannot be read is in ``Module.problems``."""
        number, lines = 0, text.split("\n")
        self.unchanged = carried.unchanged(lines) if ".while(" in text else {}
        for number, line in enumerate(lines, 1):
            line = line.strip()
            if not line:
                continue
            first = line[0]
            if self.resources:
                self.resources = not line.startswith("#-}")
            elif first == "#":
                self._alias(number, line)
            elif first == "}":
                self._close(number, line)
            elif first == "^":
                self._define(line)
            elif line.startswith(EDGES) or line.startswith(REDUCER):
                self._edge(number, line)
            elif line.startswith("{-#"):
                self.resources = True
            elif not line.startswith("//"):
                self._operation(number, line)
        if self.open or self.modules > 0:
            self.problem(number, "the text ends inside a function: it is truncated")
            while self.open:
                self._leave()
        return Module(
            name=self.name,
            attributes=self.attributes,
            functions=tuple(self.functions),
            ops=tuple(self.ops),
            locations=self.aliases,
            symbols=self.symbols,
            problems=tuple(self.problems),
        )

    def _alias(self, number: int, line: str) -> None:
        """Store what a line such as ``#loc1 = loc("x")`` or ``#map = ...`` defines. ``number`` is its number
        in the text."""
        name, equals, value = line.partition(" = ")
        if not equals:
            self.problem(number, "a line that begins with # and defines nothing")
        elif value.startswith("loc("):
            end = lexing.closing(value, 3)
            if end < 0:
                self.problem(number, f"the location {name[:80]} is truncated")
            else:
                self.aliases[name] = value[4:end]
        else:
            self.symbols[name] = value

    def _define(self, line: str) -> None:
        """Store the names of values that a line defines without an operation, such as the arguments of a
        region: ``^bb0(%arg1: tensor<f32>)``."""
        for name in lexing.DEFINED.findall(line):
            self.names[name] = None

    def _edge(self, number: int, line: str) -> None:
        """Begin a region of the operation that was read last, at line ``number``, such as ``cond {`` or
        ``reducer(...) {``."""
        self._define(line)
        owner = self.open[-1].last if self.open else None
        if owner is None:
            self.problem(number, "a region that belongs to no operation")
        if line.endswith("{") and self.open:
            self._enter(owner)

    def _enter(self, owner: int | None) -> None:
        """Begin to read a region of the operation with the index ``owner``; None: the body of a function."""
        self.blocks += 1
        self.open.append(_Open(owner, self.blocks))

    def _leave(self) -> _Open:
        """End the innermost region and return it. Fill in ``Function.end`` if it is a function's body."""
        left = self.open.pop()
        if left.owner is None and self.functions:
            self.functions[-1] = msgspec.structs.replace(self.functions[-1], end=len(self.ops))
        return left

    def _close(self, number: int, line: str) -> None:
        """End a region at line ``number``, such as ``}``, ``} do {``, ``}, {`` or ``}) : (A) -> B loc(...)``.
        Add to the operation what follows its last region: types, attributes, location."""
        if not self.open:
            self.modules -= 1
            if self.modules < 0:
                self.problem(number, "a closing brace without an opening one")
                self.modules = 0
            return
        left = self._leave()
        if line.endswith("{"):
            self._define(line)
            self._enter(left.owner)
            return
        if left.owner is None or len(line) == 1:
            return
        rest, location = lexing.location(line)
        before, types = lexing.signature(rest)
        op = self.ops[left.owner]
        inputs, outputs = (
            (op.inputs, op.outputs) if not types else self._types(types, op.results, op.operands)
        )
        extra = before.lstrip("})> ")
        detail = op.detail + " " + self._bare(extra) if extra else op.detail
        self.ops[left.owner] = msgspec.structs.replace(
            op, inputs=inputs, outputs=outputs, detail=detail, location=location or op.location
        )

    def _operation(self, number: int, line: str) -> None:
        """Read the operation on line ``number``, inside or outside of a function."""
        found = lexing.OPERATION.match(line)
        if found is None:
            self.problem(number, f"not an operation: {line[:80]}")
        elif self.open:
            self._inside(number, line, found)
        else:
            self._outside(number, line, found[3])

    def _inside(self, number: int, line: str, match: re.Match[str]) -> None:
        """Read an operation in a function, on line ``number``. ``match`` is the match of ``lexing.OPERATION``
        with the line."""
        defined, _, name = match.groups()
        scope = self.open[-1]
        rest, location = lexing.location(line)
        opens = rest.endswith("{")
        head, types = (rest, "") if opens else lexing.signature(rest)
        head = head[match.end() :]
        name = FULL_NAMES.get(name, name)
        loop = name == "stablehlo.while" or name == "mhlo.while"
        if opens or loop:
            self._define(head)
        if loop:
            self._name_unchanged(number, head)
        count, operands, picks, places = self._operands(head) if "%" in head else (0, (), (), ())
        calls = "@" in head and (name == "func.call" or name.endswith("custom_call"))
        index = len(self.ops)
        results = self._name_results(defined, index) if defined else 0
        inputs, outputs = self._types(types, results, operands, count) if types else ((), ())
        if not (types or opens or loop or name in NOT_OPERATIONS) and ":" in line:
            self.problem(number, f"the types of {name} could not be read")
        self.ops.append(
            Op(
                name,
                number,
                len(self.functions) - 1,
                scope.block,
                scope.owner,
                results,
                operands,
                inputs,
                outputs,
                self._bare(head),
                self.interned.setdefault(location, location),
                _symbol(head) if calls else None,
                picks,
                places,
            )
        )
        scope.last = index
        if opens:
            if len(self.open) > MAX_OPEN:
                self.problem(number, f"regions nested more than {MAX_OPEN} deep")
            self._enter(index)

    def _name_unchanged(self, number: int, head: str) -> None:
        """Let the name of each argument that a while loop does not change refer to its value before the loop.
        ``head`` is the loop's line after its name, ``number`` the number of this line."""
        unchanged = self.unchanged.get(number, ())
        for argument, value in carried.PAIR.findall(head):
            if argument in unchanged:
                self.names[argument] = self.names.get(value)

    def _operands(self, head: str) -> tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Parse the operands of an operation. Return (number of operands, ``Op.operands``, ``Op.picks``,
        ``Op.places``). ``head`` is the line after the operation's name, without types and location.

        Operands that are arguments of regions are counted, but are in none of the tuples.
        """
        values = lexing.OPERAND.findall(lexing.STRING.sub('""', head) if '"' in head else head)
        names = self.names
        known = [names.get(v.partition("#")[0]) for v in values]
        picks: tuple[int, ...] = ()
        if "#" in head:
            numbers = tuple([_number(v) for v, k in zip(values, known, strict=True) if k is not None])
            picks = numbers if any(numbers) else ()
        places: tuple[int, ...] = ()
        if None in known:
            places = tuple([n for n, k in enumerate(known) if k is not None])
        return len(values), tuple([k for k in known if k is not None]), picks, places

    def _name_results(self, defined: str, index: int) -> int:
        """Store the names of the results of operation ``index``, and return how many there are: 2 for
        ``%5:2``."""
        results = 0
        for part in defined.split(", "):
            value, _, many = part.partition(":")
            results += int(many) if many.isascii() and many.isdigit() and len(many) < 7 else 1
            self.names[value] = index
        return results

    def _bare(self, head: str) -> str:
        """Return the text of an operation with ``%`` for every value name. Operations that differ only in
        their operands then have equal texts."""
        if "%" in head:
            head = lexing.VALUE.sub("%", head)
        return self.interned.setdefault(head, head)

    def _types(
        self, text: str, results: int, operands: tuple[int, ...], count: int = 0
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return (types of the operands, types of the results) from the ``text`` of an operation's types:
        ``(A, B) -> C``, or a short form such as ``T``, which states one type for several values. ``results``
        and ``count`` are the numbers of results and operands."""
        found = self.signatures.get(text)
        if found is None:
            found = self.signatures[text] = lexing.types(text)
        inputs, outputs = found
        if inputs is not None:
            return inputs, outputs
        # The short form has a type that repeats only once: ``add %0, %1 : T``, ``select %p, %a, %b : P, T``,
        # ``while(...) : T, U``. The last ones are the types of the results.
        n = max(count, len(operands))
        taken = outputs + outputs[-1:] * (n - len(outputs)) if n else ()
        return taken[:n], outputs[-results:] if results else ()

    def _outside(self, number: int, line: str, name: str) -> None:
        """Read an operation outside of functions, on line ``number``: the module itself, a function
        (``func.func``) or a mesh."""
        name = name.removeprefix("builtin.")
        called = _symbol(line)
        if name == "module":
            self.modules += 1
            self.name = self.name or called
            at = line.find(" attributes {")
            if at >= 0 and not self.attributes:
                self.attributes = lexing.attributes(line[at + 12 :])
        elif name == "func.func":
            self._function(number, line, called)
        elif called is not None:
            self.symbols.setdefault("@" + called, line)
            if line.endswith("{"):
                self.problem(number, f"a {name} outside every function is not read")
                self.modules += 1
        else:
            self.problem(number, f"outside every function: {line[:80]}")

    def _function(self, number: int, line: str, name: str | None) -> None:
        """Read the first line of the function ``name``, with arguments and results. ``number`` is the number
        of the line."""
        self.names = {}
        start = line.find("(", line.find("@"))
        end = lexing.closing(line, start) if start >= 0 else -1
        arguments: list[Argument] = []
        results: list[Result] = []
        if name is None or end < 0:
            self.problem(number, "a function whose arguments could not be read")
        else:
            for k, piece in enumerate(lexing.split(line[start + 1 : end])):
                value, argument = _argument(piece)
                arguments.append(argument)
                self.names[value] = -1 - k
            results = _results(line[end + 1 :].lstrip())
        public = " private @" not in line[:start]
        first = len(self.ops)
        self.functions.append(
            Function(name or "", public, number, first, first, tuple(arguments), tuple(results))
        )
        if line.endswith("{"):
            self._enter(None)


def _symbol(text: str) -> str | None:
    """Return the first symbol in ``text`` without ``@``: ``main`` for ``@main``; None if there is none."""
    found = SYMBOL.search(text)
    return None if found is None else found[2] or lexing.unquote(found[1] or "")


def _number(value: str) -> int:
    """Return the number of a value among the results of its operation: 2 for ``%5#2``, 0 for ``%5``."""
    digits = value.partition("#")[2]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 7 else 0


def _argument(piece: str) -> tuple[str, Argument]:
    """Parse ``%arg0: tensor<4xf32> {a = 1} loc("x")`` to (name of the value, argument). The name is empty for
    a declaration, which has only the type."""
    rest, location = lexing.location(piece)
    value, colon, rest = rest.partition(": ")
    if not colon:
        value, rest = "", value
    kind, attributes = _type_and_attributes(rest)
    name = None
    if location.startswith('"') and lexing.NAME_ONLY.fullmatch(location):
        name = lexing.unquote(location)
    return value, Argument(kind, name, attributes)


def _type_and_attributes(text: str) -> tuple[str, dict[str, str]]:
    """Split ``tensor<4xf32> {a = 1 : i32}`` into (type, attributes): ``("tensor<4xf32>", {"a": "1 :
    i32"})``."""
    at = text.find(" {")
    return (text.strip(), {}) if at < 0 else (text[:at].strip(), lexing.attributes(text[at + 1 :]))


def _results(text: str) -> list[Result]:
    """Parse the text after a function's arguments, ``-> (T {a = 1}, U) attributes {...} {``, to the list of
    the function's results."""
    if not text.startswith("->"):
        return []
    text = text[2:].strip()
    if text.startswith("("):
        end = lexing.closing(text, 0)
        pieces = lexing.split(text[1 : end if end > 0 else len(text)])
    else:
        pieces = [text.removesuffix("{").partition(" attributes ")[0].strip()]
    return [Result(*_type_and_attributes(p)) for p in pieces]


def read(text: str) -> Module:
    """Parse the StableHLO text of a module. Never raises: a line that cannot be read becomes a
    ``Problem``."""
    return _Reader().read(text)
