"""Write one compiled program as an entry of ``programs`` in the JSON report."""

from __future__ import annotations

from typing import Any

import msgspec

from jaxscope.analysis.hlo.program import Program as Compiled
from jaxscope.analysis.memory_fit import contributors
from jaxscope.analysis.programs import NOTHING, Texts, peak_bytes
from jaxscope.analysis.rematerialization import Remat
from jaxscope.analysis.stablehlo.reading import Reading
from jaxscope.model import devices
from jaxscope.model.records import Program
from jaxscope.report import contract
from jaxscope.schema.keys import Memory


def program_json(p: Program, texts: Texts) -> contract.Program:
    """Return the entry of ``p``, a program compiled for this machine, in the list ``programs`` of the JSON
    report. ``texts`` are the parsed StableHLO and HLO of the program."""
    compiled = p.compiled
    cost = compiled.cost if compiled is not None else {}
    memory = _memory(compiled.memory if compiled is not None else None, texts.hlo, texts.stablehlo)
    if memory is not None:
        capacities = [devices.stated_capacity(c) for c in p.compilations]
        least = min((n for n in capacities if n is not None), default=None)
        memory = msgspec.structs.replace(memory, capacity_bytes=least)
    entry = NO_TEXTS
    if texts is not NOTHING:
        entry = msgspec.structs.replace(entry, **msgspec.structs.asdict(texts_json(texts)))
    return msgspec.structs.replace(
        entry,
        id=p.id,
        function=None if p.function is None else p.function.id,
        module=p.module,
        stablehlo=p.texts.get("stablehlo"),
        hlo=p.texts.get("hlo"),
        target=p.target,
        compilations=[c.id for c in p.compilations],
        memory=memory,
        num_partitions=entry.num_partitions if p.lowered is None else p.lowered.num_partitions,
        flops=cost.get("flops"),
        bytes_accessed=cost.get("bytes accessed"),
    )


_NULL: dict[str, Any] = dict.fromkeys(contract.Program.__struct_fields__)
NO_TEXTS = contract.Program(**_NULL)  # entries are copies of it: most programs of a large run have no texts


def texts_json(texts: Texts, memory: Memory | None = None) -> contract.Texts:
    """Return the part of a program's entry in the JSON report that comes from ``texts``, its parsed StableHLO
    and HLO. Unknown values are null. ``memory`` has the sizes that the compiler states; None: take them from
    the HLO."""
    hlo, lowered = texts.hlo, texts.stablehlo
    partitions = [x.num_partitions for x in (hlo, lowered) if x is not None and x.num_partitions is not None]
    return contract.Texts(
        num_partitions=partitions[0] if partitions else None,
        problems=_problems(hlo, lowered),
        **_of_hlo(hlo),
        **_of_stablehlo(lowered),
        memory=_memory(memory, hlo, lowered),
        remats=_remats(texts.remats),
        flops=None,
        bytes_accessed=None,
        bounds=None,
    )


def _remats(remats: list[Remat] | None) -> list[contract.Rematerialization] | None:
    return None if remats is None else [contract.Rematerialization.copy_of(r) for r in remats]


def _problems(hlo: Compiled | None, lowered: Reading | None) -> list[contract.Problem] | None:
    """Return the entry ``problems``: parts of the HLO and StableHLO that could not be parsed. None if both
    texts are missing."""
    if hlo is None and lowered is None:
        return None
    found = [contract.Problem("hlo", p.line, p.text) for p in (hlo.problems if hlo is not None else ())]
    return found + [
        contract.Problem("stablehlo", p.line, p.text)
        for p in (lowered.problems if lowered is not None else ())
    ]


_OF_HLO = (
    "instructions", "mesh", "fusions", "unfused_elementwise", "custom_calls", "collectives",
    "wire_bytes_by_axes",
    "wire_bytes_at_least_by_axes", "wire_bytes_at_most_by_axes", "loops", "matrix_flops",
    "matrix_flops_at_least",
    "matrix_flops_at_most", "estimated_cycles", "estimated_cycles_at_least",
)  # fmt: skip
_OF_STABLEHLO = ("upcasts", "callbacks", "repeated_blocks", "donation", "constants", "op_counts")


def _of_hlo(hlo: Compiled | None) -> dict[str, Any]:
    """Return the fields of ``contract.Texts`` that come from the HLO, by name. All are None if ``hlo`` is
    None."""
    if hlo is None:
        return dict.fromkeys(_OF_HLO)
    fusions = [contract.Fusion.copy_of(f) for f in hlo.fusions.each]
    return {name: getattr(hlo, name) for name in _OF_HLO} | {
        "fusions": contract.Fusions.copy_of(hlo.fusions, each=fusions),
        "collectives": [contract.Collective.copy_of(c) for c in hlo.collectives],
        "loops": [contract.Loop.copy_of(loop) for loop in hlo.loops],
    }


def _of_stablehlo(lowered: Reading | None) -> dict[str, Any]:
    """Return the fields of ``contract.Texts`` that come from the StableHLO, by name. All are None if
    ``lowered`` is None."""
    if lowered is None:
        return dict.fromkeys(_OF_STABLEHLO)
    return {
        "upcasts": [contract.Upcast.copy_of(u) for u in lowered.upcasts],
        "callbacks": [contract.Callback.copy_of(c) for c in lowered.callbacks],
        "repeated_blocks": [contract.RepeatedBlock.copy_of(r) for r in lowered.repeated],
        "donation": [contract.Donation.copy_of(d) for d in lowered.donation],
        "constants": [
            contract.Constant.copy_of(c, shape=None if c.shape is None else list(c.shape))
            for c in lowered.constants
        ],
        "op_counts": lowered.op_counts,
    }


def _memory(memory: Memory | None, hlo: Compiled | None, lowered: Reading | None) -> contract.Memory | None:
    """Return the entry ``memory`` of a program for this machine. ``memory`` has the sizes that the compiler
    states; None: take those of arguments, results and shared buffers from the HLO, the others are unknown.
    Return None if the HLO is unknown, too."""
    if memory is None and hlo is None:
        return None
    known = memory or Memory()
    sizes = hlo.memory if memory is None and hlo is not None else known
    return contract.Memory(
        argument_bytes=sizes.argument_bytes,
        output_bytes=sizes.output_bytes,
        alias_bytes=sizes.alias_bytes,
        temp_bytes=known.temp_bytes,
        code_bytes=known.code_bytes,
        peak_bytes=peak_bytes(known),
        by_path=by_path(lowered),
    )


def by_path(lowered: Reading | None) -> list[contract.Contributor] | None:
    """Return the arguments and results of the user's function with their bytes, those with the most bytes on
    one device first. ``lowered`` is the program's parsed StableHLO; None: return None."""
    found = contributors(lowered)
    return None if found is None else [contract.Contributor.copy_of(c) for c in found]
