"""Find the names that a function's code reads besides its arguments: ``scale``, ``config['lr']``,
``self.layer.width``.

The bytecode is followed with a simulated stack, which has names in place of values. Only code objects are
examined: nothing is called, and no value is read. The instruction sets are those of Python 3.11 to 3.13. At
an unknown instruction, all names on the simulated stack count as read, and the stack is emptied.
"""

from __future__ import annotations

import dis
import sys
from types import CodeType
from typing import NamedTuple

CLOSURE, GLOBAL, PARAMETER = "closure", "global", "parameter"
ATTRIBUTE, ITEM = "attribute", "item"

MAX_NESTED = 8  # functions within functions
MAX_INSTRUCTIONS = 20_000
KEYS = (str, int, bool, type(None))

METHODS_ARE_ATTRIBUTES = sys.version_info >= (3, 12)  # LOAD_METHOD became a bit of LOAD_ATTR

# Methods of dict, list and set that do not change the container; all others may.
READING = frozenset({"items", "values", "keys", "get", "copy", "index", "count"})


class Name(NamedTuple):
    """The expression by which code reads a value: a variable, then attributes or items of it, such as
    ``config['lr']``.

    Attributes:
      kind: the kind of the variable: closure, global or parameter.
      name: the name of the variable.
      steps: (kind of step, key) pairs, where the key is the attribute's name or the item's constant key:
        ``((ITEM, 'lr'),)`` for ``config['lr']``.
    """

    kind: str
    name: str
    steps: tuple[tuple[str, object], ...] = ()


class Reads(NamedTuple):
    """The names that the code of one function, and of the functions defined inside it, reads and assigns.

    Attributes:
      read: name -> (line, whether every run of the function reads the name there). The line is the first one
        that reads the name before any jump; if there is none, the first one that reads it, with False.
      written: the names to which the code assigns. If it assigns to ``config[key]`` with a variable ``key``,
        this is ``config``.
      attributes: the names of all attributes that the code reads.
    """

    read: dict[Name, tuple[int, bool]]
    written: set[Name]
    attributes: set[str]


def of_code(code: CodeType) -> Reads:
    """Return the names that the code of a function reads and assigns, such as ``config['lr']``."""
    found = Reads({}, set(), set())
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    outer: dict[str, Name | None] = {n: Name(CLOSURE, n) for n in code.co_freevars}
    _Scan(code, {n: Name(PARAMETER, n) for n in parameters}, outer, found, True, 0).run()
    return found


class _Const(NamedTuple):
    """A constant of the code, as an entry of the simulated stack (expressions and constants in place of
    values)."""

    value: object


_Entry = Name | _Const | CodeType | None

# How many entries an instruction takes from the stack and how many it puts there.
_EFFECTS = {
    **dict.fromkeys(("NOP", "RESUME", "PRECALL", "CACHE", "KW_NAMES", "EXTENDED_ARG"), (0, 0)),
    **dict.fromkeys(("COPY_FREE_VARS", "MAKE_CELL", "RETURN_GENERATOR"), (0, 0)),
    **dict.fromkeys(("PUSH_NULL", "LOAD_CLOSURE", "LOAD_ASSERTION_ERROR"), (0, 1)),
    **dict.fromkeys(("POP_TOP", "RETURN_VALUE", "IMPORT_STAR"), (1, 0)),
    **dict.fromkeys(("UNARY_NOT", "UNARY_NEGATIVE", "UNARY_INVERT", "UNARY_POSITIVE", "TO_BOOL"), (1, 1)),
    **dict.fromkeys(("GET_ITER", "FORMAT_SIMPLE", "CONVERT_VALUE", "LIST_TO_TUPLE"), (1, 1)),
    **dict.fromkeys(("BINARY_OP", "COMPARE_OP", "IS_OP", "CONTAINS_OP"), (2, 1)),
    **dict.fromkeys(("FORMAT_WITH_SPEC", "SET_FUNCTION_ATTRIBUTE"), (2, 1)),
    **dict.fromkeys(("LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE", "LIST_APPEND"), (1, 0)),
    "BINARY_SLICE": (3, 1),
    "STORE_SLICE": (4, 0),
    "GET_LEN": (1, 2),
}


class _Scan:
    """Follows the bytecode of one function with a simulated stack, which has expressions such as
    ``config['lr']`` in place of values. The expressions that the code reads and assigns are added to
    ``reads``.

    Args:
      local: parameter of the function -> the Name (expression) that is recorded when the code reads the
        parameter. Empty for a function that is defined inside another one.
      outer: closure variable -> the Name that is recorded when the code reads the variable, such as
        ``self.layer`` for a variable ``layer`` of the function around; None: unknown.
      reads: the result, to which this object adds.
      straight: whether every run of the outermost function executes this code, up to the first jump.
      depth: how many functions are around this one.
    """

    def __init__(
        self,
        code: CodeType,
        local: dict[str, Name],
        outer: dict[str, Name | None],
        reads: Reads,
        straight: bool,
        depth: int,
    ) -> None:
        self.code, self.reads, self.straight, self.depth = code, reads, straight, depth
        self.outer = outer
        self.stack: list[_Entry] = []
        self.line = code.co_firstlineno
        instructions = [i for _, i in zip(range(MAX_INSTRUCTIONS), dis.get_instructions(code), strict=False)]
        stores: dict[str, int] = {}
        for i in instructions:
            for name in _stored(i):
                stores[name] = stores.get(name, 0) + 1
        self.instructions = instructions
        # A local variable that is assigned to once has this value from there on.
        self.once = {n for n, count in stores.items() if count == 1} - set(local)
        self.local: dict[str, Name | None] = {n: v for n, v in local.items() if n not in stores}

    def run(self) -> None:
        """Follow all instructions of the function, and record the expressions that they read and assign."""
        for i in self.instructions:
            if i.is_jump_target:
                self._read_all()
                self.straight = False
            position = i.positions
            if position is not None and position.lineno is not None:
                self.line = position.lineno
            self._step(i.opname, i.arg or 0, i.argval)
        self._read_all()

    def _pop(self) -> _Entry:
        """Remove the topmost entry from the simulated stack and return it. Return None for a value without an
        expression, or if the stack is empty."""
        return self.stack.pop() if self.stack else None

    def _use(self, count: int) -> None:
        """Remove ``count`` entries from the simulated stack, and record that the code reads their values."""
        for _ in range(count):
            self._read(self._pop())

    def _read_all(self) -> None:
        """Empty the simulated stack, and record that the code reads the values of all its entries. This is
        done where it is unknown what the code does with them, such as at a jump."""
        self._use(len(self.stack))

    def _read(self, entry: _Entry) -> None:
        """Record that the code reads the value of ``entry``, an entry of the simulated stack. Do nothing if
        ``entry`` is not a Name (an expression such as ``config['lr']``), or is a parameter without attributes
        or items."""
        if isinstance(entry, Name):
            if entry.kind == PARAMETER and not entry.steps:
                return  # an argument that is passed on
            before = self.reads.read.get(entry)
            if before is None or (self.straight and not before[1]):
                self.reads.read[entry] = (self.line, self.straight)

    def _write(self, entry: _Entry) -> None:
        """Record that the code assigns to ``entry``, an entry of the simulated stack. Do nothing if ``entry``
        is not a Name (an expression such as ``config['lr']``)."""
        if isinstance(entry, Name):
            self.reads.written.add(entry)

    def _variable(self, name: str) -> Name | None:
        """Return the expression that stands for the local or closure variable ``name``: ``self.layer`` after
        ``layer = self.layer``. None: unknown."""
        if name in self.code.co_freevars:
            return self.outer.get(name)
        return self.local.get(name)

    def _step(self, op: str, arg: int, value: object) -> None:
        """Follow one instruction of the bytecode. ``op`` is its name, such as ``LOAD_ATTR``, ``arg`` its
        numeric argument, and ``value`` what this argument stands for, such as the attribute's name."""
        stack = self.stack
        if op in ("LOAD_GLOBAL", "LOAD_NAME"):
            if op == "LOAD_GLOBAL" and arg & 1:
                stack.append(None)  # a call needs one more entry; which of the two is above is irrelevant
            stack.append(Name(GLOBAL, str(value)))
        elif op in ("LOAD_DEREF", "LOAD_CLASSDEREF"):
            stack.append(self._variable(str(value)))
        elif op.startswith(("LOAD_FAST", "STORE_FAST")):
            self._local_variable(op, value)
        elif op in ("LOAD_CONST", "RETURN_CONST"):
            if isinstance(value, CodeType):
                self._inner(value)
            if op == "LOAD_CONST":
                stack.append(_Const(value))
        elif op in ("LOAD_ATTR", "LOAD_METHOD"):
            self._attribute(op, arg, str(value))
        elif op == "BINARY_SUBSCR":
            key, base = self._pop(), self._pop()
            stack.append(self._item(base, key))
        elif op == "STORE_SUBSCR":
            key, base = self._pop(), self._pop()
            self._use(1)
            self._read(key)
            constant = isinstance(base, Name) and isinstance(key, _Const)
            self._write(self._item(base, key) if constant else base)
        elif op == "STORE_ATTR":
            base = self._pop()
            self._use(1)
            if isinstance(base, Name):
                self._write(base._replace(steps=(*base.steps, (ATTRIBUTE, str(value)))))
        elif op in ("STORE_GLOBAL", "STORE_DEREF", "STORE_NAME", "DELETE_GLOBAL", "DELETE_DEREF"):
            self._use(op.startswith("STORE"))
            self._write(Name(GLOBAL, str(value)) if "GLOBAL" in op else self._variable(str(value)))
        elif op == "COPY":
            stack.append(stack[-arg] if 0 < arg <= len(stack) else None)
        elif op == "SWAP":
            if 1 < arg <= len(stack):
                stack[-1], stack[-arg] = stack[-arg], stack[-1]
            else:
                self._read_all()
        elif op == "UNPACK_SEQUENCE":
            self._use(1)
            stack.extend([None] * arg)
        else:
            self._other(op, arg)

    def _other(self, op: str, arg: int) -> None:
        """Follow the instruction ``op`` with the argument ``arg``, such as ``CALL``, that reads and removes
        entries of the simulated stack and adds values without an expression. At a jump or an unknown
        instruction, empty the stack."""
        if op == "CALL":
            taken, put = arg + 2, 1
        elif op == "CALL_KW":
            taken, put = arg + 3, 1
        elif op in ("BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_STRING", "BUILD_SLICE"):
            taken, put = arg, 1
        elif op == "BUILD_MAP":
            taken, put = 2 * arg, 1
        elif op == "BUILD_CONST_KEY_MAP":
            taken, put = arg + 1, 1
        elif op in _EFFECTS:
            taken, put = _EFFECTS[op]
        else:  # a jump, or an unknown instruction: the stack is empty afterwards
            self._read_all()
            if "JUMP" in op or op in ("FOR_ITER", "SEND", "BEFORE_WITH", "RERAISE", "RAISE_VARARGS"):
                self.straight = False
            return
        self._use(taken)
        self.stack.extend([None] * put)
        if op in ("RETURN_VALUE", "RETURN_GENERATOR"):
            self.straight = False

    def _local_variable(self, op: str, value: object) -> None:
        """Follow the instruction ``op``, such as ``STORE_FAST``, that loads or stores the local variable
        ``value``. From Python 3.13 on, it may load or store two: ``value`` is then a tuple."""
        names = [str(v) for v in value] if isinstance(value, tuple) else [str(value)]
        verbs = [part.strip("_") for part in op.split("FAST")[:-1]]  # of STORE_FAST_LOAD_FAST both
        for verb, name in zip(verbs, names, strict=False):
            if verb == "STORE":
                entry = self._pop()
                if name in self.once and isinstance(entry, Name):
                    self.local[name] = entry
                    if not (entry.kind == PARAMETER and not entry.steps):
                        self._read_alias(entry)
                else:
                    self._read(entry)
            elif name in self.code.co_freevars or name in self.code.co_cellvars:
                self.stack.append(None)  # from Python 3.13 on: a cell for a function that is defined here
            else:
                self.stack.append(self._variable(name))

    def _read_alias(self, entry: Name) -> None:
        """Record the attribute names in ``entry``, an expression that the code assigns to a local variable:
        ``layer`` in ``x = self.layer``."""
        # After ``layer = self.layer``, attributes of it are read later by the name ``layer``.
        self.reads.attributes.update(str(k) for how, k in entry.steps if how == ATTRIBUTE)

    def _attribute(self, op: str, arg: int, name: str) -> None:
        """Follow ``op`` (``LOAD_ATTR`` or ``LOAD_METHOD``): replace the topmost entry of the simulated stack
        by its attribute ``name``. ``arg``, the instruction's numeric argument, shows whether a method is
        loaded."""
        self.reads.attributes.add(name)
        base = self._pop()
        if op == "LOAD_METHOD" or (METHODS_ARE_ATTRIBUTES and arg & 1):
            self.stack.append(None)
        if isinstance(base, Name):
            self.stack.append(base._replace(steps=(*base.steps, (ATTRIBUTE, name))))
        else:
            self.stack.append(None)

    def _item(self, base: _Entry, key: _Entry) -> Name | None:
        """Return the expression ``base[key]``, such as ``config['lr']``. If ``base`` is no expression or
        ``key`` no constant of a type in KEYS, record that the code reads both, and return None."""
        if isinstance(base, Name) and isinstance(key, _Const) and type(key.value) in KEYS:
            return base._replace(steps=(*base.steps, (ITEM, key.value)))
        self._read(base)
        self._read(key)
        return None

    def _inner(self, code: CodeType) -> None:
        """Follow ``code``, the code of a function, a comprehension or a class that is defined inside this
        function. Do nothing if more than MAX_NESTED functions are around it."""
        if self.depth < MAX_NESTED:
            outer = {n: self._variable(n) for n in code.co_freevars}
            _Scan(code, {}, outer, self.reads, False, self.depth + 1).run()


def _stored(i: dis.Instruction) -> list[str]:
    """Return the names of the local variables that the instruction ``i`` assigns or deletes."""
    if "STORE_FAST" not in i.opname and i.opname not in ("STORE_DEREF", "DELETE_FAST", "DELETE_DEREF"):
        return []
    if not isinstance(i.argval, tuple):
        return [str(i.argval)]
    return [str(v) for v in (i.argval[:1] if i.opname.endswith("LOAD_FAST") else i.argval)]
