"""One program as plain data: an entry of ``programs`` in the report contract."""

from __future__ import annotations

from typing import Any

from jaxscope.analysis.hlo.program import Program as Compiled
from jaxscope.analysis.programs import Texts, peak_bytes
from jaxscope.analysis.remats import Remat
from jaxscope.analysis.stablehlo.reading import Reading
from jaxscope.model import devices
from jaxscope.model.records import Program
from jaxscope.schema.keys import Frame, Memory


def program_json(p: Program, texts: Texts) -> dict[str, Any]:
    """The entry of a recorded program."""
    compiled = p.compiled
    memory = compiled.memory if compiled is not None else None
    cost = compiled.cost if compiled is not None else {}
    found = texts_json(texts, memory)
    if found["memory"] is not None:
        said = [devices.said_capacity(c) for c in p.compilations]
        found["memory"]["capacity_bytes"] = min((n for n in said if n is not None), default=None)
    return {
        "id": p.id,
        "of": None,
        "function": None if p.function is None else p.function.id,
        "module": p.module,
        "stablehlo": p.texts.get("stablehlo"),
        "hlo": p.texts.get("hlo"),
        "target": p.target,
        "compilations": [c.id for c in p.compilations],
        **found,
        "num_partitions": p.lowered.num_partitions if p.lowered is not None else found["num_partitions"],
        "flops": cost.get("flops"),
        "bytes_accessed": cost.get("bytes accessed"),
    }


def texts_json(texts: Texts, memory: Memory | None = None) -> dict[str, Any]:
    """What the texts say; every key is there, null where nobody knows."""
    made, read = texts.hlo, texts.stablehlo
    partitions = [x.num_partitions for x in (made, read) if x is not None and x.num_partitions is not None]
    return {
        "num_partitions": partitions[0] if partitions else None,
        "problems": _problems(made, read),
        **_of_hlo(made),
        **_of_stablehlo(read),
        "memory": _memory(memory, made, read),
        "remats": _remats(texts.remats),
        "flops": None,
        "bytes_accessed": None,
        "bounds": None,
        "estimated_cycles": made.estimated_cycles if made is not None else None,
    }


def _remats(found: list[Remat] | None) -> list[dict[str, Any]] | None:
    if found is None:
        return None
    return [
        {"name": r.name, "from": r.before, "to": r.after, "bytes": r.bytes, "source": _frame(r.source), "text": r.text}
        for r in found
    ]  # fmt: skip


def _problems(made: Compiled | None, read: Reading | None) -> list[dict[str, Any]] | None:
    if made is None and read is None:
        return None
    found = [("hlo", p) for p in made.problems] if made is not None else []
    found += [("stablehlo", p) for p in read.problems] if read is not None else []  # type: ignore[misc]
    return [{"stage": stage, "line": p.line, "text": p.text} for stage, p in found]


def _of_hlo(made: Compiled | None) -> dict[str, Any]:
    if made is None:
        return dict.fromkeys(
            ("instructions", "mesh", "fusions", "unfused_elementwise", "custom_calls", "collectives",
             "wire_bytes_by_axes", "loops", "matrix_flops")
        )  # fmt: skip
    return {
        "instructions": made.instructions,
        "mesh": None if made.mesh is None else [[axis, size] for axis, size in made.mesh],
        "fusions": {
            "total": made.fusions.total,
            "by_kind": dict(made.fusions.by_kind),
            "nested": made.fusions.nested,
            "list": [
                {"name": f.name, "kind": f.kind, "ops": dict(f.ops), "bytes_in": f.bytes_in, "bytes_out": f.bytes_out,
                 "executions": f.executions, "sources": [_frame(s) for s in f.sources]}
                for f in made.fusions.each
            ],
        },
        "unfused_elementwise": made.unfused_elementwise,
        "custom_calls": dict(made.custom_calls),
        "collectives": [
            {"kind": c.kind, "name": c.name, "async": c.is_async, "overlap": c.overlap, "bytes": c.bytes,
             "wire_bytes": c.wire_bytes, "executions": c.executions, "axes": c.axes, "group_size": c.group_size,
             "groups": c.groups, "origin": c.origin, "weight": c.weight,
             "constraint": c.constraint, "constrained_at": _frame(c.constrained_at), "source": _frame(c.source)}
            for c in made.collectives
        ],
        "wire_bytes_by_axes": dict(made.wire_bytes_by_axes),
        "loops": [{"name": loop.name, "trip_count": loop.trip_count} for loop in made.loops],
        "matrix_flops": made.matrix_flops,
    }  # fmt: skip


def _of_stablehlo(read: Reading | None) -> dict[str, Any]:
    if read is None:
        return dict.fromkeys(
            ("upcasts", "callbacks", "repeated_blocks", "donation", "constants", "op_counts")
        )
    return {
        "upcasts": [
            {"before": u.before, "after": u.after, "count": u.count, "bytes": u.bytes, "source": _frame(u.source)}
            for u in read.upcasts
        ],
        "callbacks": [
            {"kind": c.kind, "count": c.count, "ordered": c.ordered, "in_loop": c.in_loop,
             "bytes_to_host": c.bytes_to_host, "bytes_from_host": c.bytes_from_host, "source": _frame(c.source)}
            for c in read.callbacks
        ],
        "repeated_blocks": [
            {"length": r.length, "times": r.times, "carried": r.carried, "in_loop": r.in_loop, "source": _frame(r.source)}
            for r in read.repeated
        ],
        "donation": [
            {"path": d.path, "bytes": d.bytes, "device_bytes": d.device_bytes, "status": d.status, "reason": d.reason,
             "output": d.output}
            for d in read.donation
        ],
        "constants": [
            {"name": c.name, "bytes": c.bytes, "shape": None if c.shape is None else list(c.shape), "dtype": c.dtype,
             "source": _frame(c.source)}
            for c in read.constants
        ],
        "op_counts": dict(read.op_counts),
    }  # fmt: skip


def _memory(memory: Memory | None, made: Compiled | None, read: Reading | None) -> dict[str, Any] | None:
    if memory is None and made is None:
        return None
    known = memory or Memory()
    argument, output, alias = known.argument_bytes, known.output_bytes, known.alias_bytes
    if memory is None and made is not None:
        argument, output, alias = (
            made.memory.argument_bytes,
            made.memory.output_bytes,
            made.memory.alias_bytes,
        )
    return {
        "argument_bytes": argument,
        "output_bytes": output,
        "alias_bytes": alias,
        "temp_bytes": known.temp_bytes,
        "code_bytes": known.code_bytes,
        "peak_bytes": peak_bytes(known),
        "capacity_bytes": None,
        "by_path": _by_path(read),
    }


def _by_path(read: Reading | None) -> list[dict[str, Any]] | None:
    """The arguments and results by the user's names, the largest first; bytes on one device."""
    if read is None:
        return None
    values = [("argument", v) for v in read.arguments] + [("output", v) for v in read.results]
    found = [
        {"path": v.name, "of": of, "bytes": v.device_bytes, "global_bytes": v.bytes}
        for of, v in values
        if v.role == "user"
    ]
    return sorted(found, key=lambda e: -int(e["bytes"] or 0))


def _frame(frame: Frame | None) -> dict[str, Any] | None:
    return None if frame is None else {"file": frame.file, "line": frame.line, "function": frame.function}
