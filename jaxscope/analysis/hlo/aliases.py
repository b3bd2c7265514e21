"""Read the inputs and outputs of a compiled program, and which outputs reuse the memory of inputs.

The inputs are the parameters of ENTRY, the outputs are its root; without ENTRY, the outputs are read from
``entry_computation_layout``. The other facts are in attributes of the ``HloModule`` line::

    input_output_alias={ {0}: (2, {}, may-alias), {1,0}: (3, {}, must-alias) }
    buffer_donor={ (1, {}), (4, {}) }
    entry_computation_layout={(f32[4]{0}, ...)->(f32[4]{0}, ...)}

An entry of ``input_output_alias`` is ``path of the output: (number of the input, path inside the input,
kind)``. A path is the position in a tuple, or in a tuple of tuples; ``{}`` is the whole value.
``buffer_donor`` has the donated inputs that were not assigned to an output when the program was lowered.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from jaxscope.analysis.hlo import shapes
from jaxscope.analysis.hlo.attribution import op_name
from jaxscope.analysis.hlo.lexing import attribute, attributes, number, operand_text
from jaxscope.analysis.hlo.module import Module
from jaxscope.analysis.sums import known_sum

_ALIAS = re.compile(r"\{([\d,\s]*+)\}:\s*\((\d{1,9}),\s*\{([\d,\s]*+)\}(?:,\s*([a-z\-]++))?\)")
_DONOR = re.compile(r"\((\d{1,9}),\s*\{([\d,\s]*+)\}\)")


class Alias(msgspec.Struct, frozen=True):
    """An output that reuses the memory of an input.

    Attributes:
      output: the path of the output in the tuple of results: ``[1]``; ``[]`` for the whole result.
      parameter: the position of the input among the program's inputs.
      kind: ``may-alias`` or ``must-alias``, as XLA writes it; ``may-alias`` if the text has none.
    """

    output: list[int]
    parameter: int
    kind: str


class Parameter(msgspec.Struct, frozen=True, gc=False):
    """One input of the compiled program, as one device has it.

    Attributes:
      number: the position among the inputs.
      name: JAX's path of the argument (``state.params['w']``, ``x``); None: the HLO has none.
      shape: the shape as HLO writes it, with its layout.
      bytes: the bytes without padding; None: unknown.
      sharding: the sharding as XLA writes it; None: the HLO has none.
      aliased: the paths of the outputs that reuse the memory of this input.
      donor: whether the input is listed as a donated buffer that any output may use.
      matches: number of outputs that could reuse this input's memory: they have the same element type and
        dimensions, and reuse no other input's memory. An output may count for several inputs. 0 if an output
        already reuses this input.
    """

    number: int
    name: str | None
    shape: str
    bytes: int | None
    sharding: str | None
    aliased: list[list[int]]
    donor: bool
    matches: int


class Memory(msgspec.Struct, frozen=True):
    """The inputs and outputs of a compiled program. All bytes are for one device.

    The three sums of bytes include the padding that the layouts add. They do not include arrays in the host's
    memory. A sum is None if the size of an array in it is unknown, or if the text does not state the arrays.

    Attributes:
      parameters: the inputs, ordered by their numbers; empty if the text has no ENTRY.
      outputs: the shapes of the results as text.
      aliases: outputs that reuse the memory of an input.
      donors: numbers of the inputs that are donated but were not assigned to an output.
      argument_bytes: the sum over the inputs.
      output_bytes: the sum over the outputs; None also if there are no outputs.
      alias_bytes: the sum over the outputs that reuse an input's memory.
    """

    parameters: list[Parameter]
    outputs: list[str]
    aliases: list[Alias]
    donors: list[int]
    argument_bytes: int | None
    output_bytes: int | None
    alias_bytes: int | None


def read(module: Module) -> Memory:
    """Return the inputs and outputs of the compiled program ``module``, and which outputs reuse the memory of
    inputs. An input whose number cannot be read is left out."""
    header = attributes(module.header)
    aliases = [
        Alias(_path(out), int(place), kind or "may-alias")
        for out, place, _, kind in _ALIAS.findall(header.get("input_output_alias", ""))
    ]
    donors = [int(place) for place, _ in _DONOR.findall(header.get("buffer_donor", ""))]
    donated = frozenset(donors)
    outputs = _outputs(module, header)
    aliased = {tuple(a.output) for a in aliases}
    free: dict[object, int] = {}
    for position, text in enumerate(outputs):
        if (position,) not in aliased and () not in aliased:
            free[_kind(text)] = free.get(_kind(text), 0) + 1
    by_parameter: dict[int, list[list[int]]] = {}
    for alias in aliases:
        by_parameter.setdefault(alias.parameter, []).append(alias.output)
    parameters: list[Parameter] = []
    for instruction in module.entry.parameters() if module.entry else ():
        place = number(operand_text(instruction.tail).strip())
        if place is None:
            continue
        parameters.append(
            Parameter(
                number=place,
                name=op_name(instruction),
                shape=instruction.shape,
                bytes=shapes.text_bytes(instruction.shape),
                sharding=attribute(instruction.tail, "sharding"),
                aliased=by_parameter.get(place, []),
                donor=place in donated,
                matches=0 if place in by_parameter else free.get(_kind(instruction.shape), 0),
            )
        )
    parameters.sort(key=lambda p: p.number)
    return Memory(
        parameters=parameters,
        outputs=outputs,
        aliases=aliases,
        donors=donors,
        argument_bytes=known_sum([_device_bytes(p.shape) for p in parameters]) if module.entry else None,
        output_bytes=_device_bytes(_result(module, header)) if outputs else None,
        alias_bytes=_alias_bytes(aliases, outputs, header),
    )


def _outputs(module: Module, header: dict[str, str]) -> list[str]:
    """Return the shapes of the results of ``module`` as text, one for each member of the result tuple. A
    result that is no tuple gives one text, an unknown result none. ``header`` is attribute of the
    ``HloModule`` line -> text."""
    text = _result(module, header)
    shape = shapes.parse(text) if text else None
    if isinstance(shape, tuple):
        return shapes.members(text)
    return [text] if shape is not None else []


def _result(module: Module, header: dict[str, str]) -> str:
    """Return the shape of the program's result as text: the shape of ENTRY's root, else the part of
    ``entry_computation_layout`` behind ``->``; empty if the text has neither. ``header`` is attribute of the
    ``HloModule`` line -> text."""
    root = module.entry.root if module.entry else None
    return root.shape if root else header.get("entry_computation_layout", "").strip("{}").rpartition("->")[2]


def _kind(text: str) -> object:
    """Return (element type, dimensions) of an array whose shape is ``text``. For another shape, return
    ``text``. An output can reuse the memory of an input only if this function returns the same for both
    shapes."""
    shape = shapes.parse(text)
    return (shape.dtype, shape.dims) if isinstance(shape, shapes.Array) else text


def _alias_bytes(aliases: list[Alias], outputs: list[str], header: dict[str, str]) -> int | None:
    """Return the sum of the bytes of the outputs that ``aliases`` names, with padding. For an output inside a
    nested tuple, the whole member of the outer tuple counts. Return None if a size is unknown, or if the text
    has no ``HloModule`` line, so that ``header`` is empty."""
    if not header:
        return None
    return known_sum([_device_bytes(text) if (text := _at(outputs, a.output)) else None for a in aliases])


def _at(outputs: list[str], path: Sequence[int]) -> str | None:
    """Return the shape at ``path`` (``(1, 0)``: member 0 of the tuple that is member 1) in ``outputs``, the
    shapes of the results as text. An empty path is the only result. None if there is no such shape."""
    if not path:
        return outputs[0] if len(outputs) == 1 else None
    if path[0] >= len(outputs):
        return None
    member = outputs[path[0]]
    return member if len(path) == 1 else _at(shapes.members(member), path[1:])


def _device_bytes(text: str) -> int | None:
    """Return the bytes of the shape ``text`` in a device's memory, with padding; None if unknown."""
    return shapes.device_bytes(shapes.parse(text))


def _path(text: str) -> list[int]:
    """Parse the path of an output: ``1, 0`` -> ``[1, 0]``, empty text -> ``[]``."""
    return [int(p) for p in text.replace(" ", "").split(",") if p and len(p) < 10]
