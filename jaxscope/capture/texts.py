"""Convert the results of JAX and XLA to text and figures: StableHLO, compiled HLO, memory, cost, and an id of
the program.

StableHLO is printed with source locations but without large constants: an array of 4 MB would be 8 MB of
hexadecimal digits, which take 95 ms to print instead of 0.2 ms. The id of a program is a hash of its
StableHLO without the source locations, of the compiler options, of the platform and of the devices. So a
program without large constants keeps its id when it is compiled from another line.
"""

from __future__ import annotations

import hashlib
import io
import re
from typing import Any

from jaxscope.schema.keys import Device, Memory

ELIDE_ABOVE = 16  # elements of a constant that is still printed
# loc(#loc12), loc("x"), loc("x"(#loc3)), and the table of #loc lines. The patterns begin with literal text:
# they take 2 ms a megabyte, and 10 ms with an optional space in front.
LOCATION = re.compile(r" loc\([^()]*(?:\([^()]*\))?\)")
LOCATION_LINE = re.compile(r"\n#loc[^\n]*")
COSTS = ("flops", "transcendentals", "bytes accessed", "optimal_seconds")


def stablehlo(module: Any) -> str:
    """Return the StableHLO text of an MLIR module, with source locations. ``__elided__`` replaces each
    constant of more than ELIDE_ABOVE elements."""
    return str(module.operation.get_asm(large_elements_limit=ELIDE_ABOVE, enable_debug_info=True))


def elided(module: Any, text: str) -> bytes:
    """Return a hash of ``module`` if its StableHLO ``text`` does not contain all constants (``__elided__``);
    else empty bytes. The hash depends on all constants, and also on the source locations."""
    if "__elided__" not in text:
        return b""
    out = io.BytesIO()  # MLIR's bytecode contains the constants: 6 ms for 4 MB
    module.operation.write_bytecode(out)
    return hashlib.sha256(out.getvalue()).digest()


def program_id(text: str, options: Any, platforms: Any, devices: Any, constants: bytes = b"") -> str:
    """Return 16 hexadecimal digits that identify a program: a hash of all arguments.

    Args:
      text: the program's StableHLO; its source locations are ignored.
      options: the compiler options of jit, in any order.
      platforms: the platforms that the program was lowered for.
      devices: the devices that the program is compiled for, as any value with a repr.
      constants: a hash of the constants that ``text`` leaves out (``elided``).
    """
    bare = LOCATION.sub("", LOCATION_LINE.sub("", "\n" + text))
    digest = hashlib.sha256(bare.encode("utf-8", "replace"))
    digest.update(constants)
    digest.update(repr((sorted(map(str, options or ())), tuple(platforms or ()), devices)).encode())
    return digest.hexdigest()[:16]


def hlo(executable: Any) -> str:
    """Return the HLO text of a compiled program; if the executable has several modules, their texts
    joined."""
    # Several modules were never seen on CPU, GPU or one-slice TPU.
    return "\n\n".join(m.to_string() for m in executable.hlo_modules())


def memory(executable: Any) -> Memory:
    """Return the memory in bytes that the compiled program ``executable`` takes on one device: arguments,
    results, results in the memory of arguments (aliases), temporary buffers, code. A figure is None if XLA
    does not give it.

    The figures are those of XLA's ``get_compiled_memory_stats``, without its peak.
    """
    stats = executable.get_compiled_memory_stats()  # its peak is wrong on CPU

    def read(name: str) -> int | None:
        value = getattr(stats, f"{name}_size_in_bytes", None)
        return value if isinstance(value, int) else None

    return Memory(
        argument_bytes=read("argument"),
        output_bytes=read("output"),
        alias_bytes=read("alias"),
        temp_bytes=read("temp"),
        code_bytes=read("generated_code"),
    )


def cost(executable: Any) -> dict[str, float]:
    """Return figures of XLA's cost analysis of ``executable``: name (one of COSTS) -> value. A figure that
    XLA does not know is missing. XLA counts the body of a loop once, not once for each iteration."""
    found = executable.cost_analysis()
    if isinstance(found, list):
        found = found[0] if found else {}
    return {k: float(found[k]) for k in COSTS if k in found and float(found[k]) >= 0}


def devices(backend: Any) -> list[Device]:
    """Return the devices of JAX's ``backend``, those of all processes, as data."""
    return [
        Device(id=d.id, kind=str(d.device_kind), process_index=int(d.process_index))
        for d in backend.devices()
    ]
