"""What JAX and XLA made, as text: StableHLO and compiled HLO, stored once by hash, and the figures
the compiler gives beside them.

StableHLO is printed with locations and with large constants elided: a captured 4 MB array would be
8 MB of hex, 95 ms to print (elided: 0.2 ms). A program's identity is the hash of that text without
its locations, the compiler options and the target, so that the same program compiled twice, or
from another line, is one program.
"""

from __future__ import annotations

import hashlib
import io
import re
from typing import Any

from jaxscope.schema.keys import Device, Memory

ELIDE_ABOVE = 16  # elements of a constant; also what the reader of constants can still show
# loc(#loc12), loc("x"), loc("x"(#loc3)), and the table of #loc lines. Patterns that begin with literal
# text: 2 ms a megabyte where an optional space in front takes 10.
LOCATION = re.compile(r" loc\([^()]*(?:\([^()]*\))?\)")
LOCATION_LINE = re.compile(r"\n#loc[^\n]*")
COSTS = ("flops", "transcendentals", "bytes accessed", "optimal_seconds")


def stablehlo(module: Any) -> str:
    """Return the text of an MLIR module with locations, and with large constants elided."""
    return str(module.operation.get_asm(large_elements_limit=ELIDE_ABOVE, enable_debug_info=True))


def elided(module: Any, text: str) -> bytes:
    """Return a hash of the constants that ``text`` leaves out; empty if there are none.

    The hash is that of MLIR's bytecode (6 ms for 4 MB), which contains the constants. It contains the source
    locations, too: the same program on another line gets another hash. Programs whose constants differ never
    get the same one.
    """
    if "__elided__" not in text:
        return b""
    out = io.BytesIO()
    module.operation.write_bytecode(out)
    return hashlib.sha256(out.getvalue()).digest()


def program_id(text: str, options: Any, platforms: Any, devices: Any, constants: bytes = b"") -> str:
    """Return 16 hex digits that identify the program; see the module's docstring.

    ``constants``: a hash of the constants that the text leaves out.
    """
    bare = LOCATION.sub("", LOCATION_LINE.sub("", "\n" + text))
    digest = hashlib.sha256(bare.encode("utf-8", "replace"))
    digest.update(constants)
    digest.update(repr((sorted(map(str, options or ())), tuple(platforms or ()), devices)).encode())
    return digest.hexdigest()[:16]


def hlo(executable: Any) -> str:
    """Return the compiled text; of several modules (never seen on CPU, GPU or one-slice TPU) all texts."""
    return "\n\n".join(m.to_string() for m in executable.hlo_modules())


def memory(executable: Any) -> Memory:
    """Return bytes on one device from ``get_compiled_memory_stats``, without its peak, which is wrong on
    CPU."""
    stats = executable.get_compiled_memory_stats()

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
    """Return XLA's cost analysis, with loop bodies counted once; negative figures mean unknown and are left
    out."""
    found = executable.cost_analysis()
    if isinstance(found, list):
        found = found[0] if found else {}
    return {k: float(found[k]) for k in COSTS if k in found and float(found[k]) >= 0}


def fingerprint(executable: Any) -> str | None:
    value = getattr(executable, "fingerprint", None)
    if isinstance(value, bytes):  # XLA's CPU backend gives decimal digits, others raw bytes
        return value.decode() if value.isdigit() else value.hex()[:64]
    return str(value)[:64] if value else None


def devices(backend: Any) -> list[Device]:
    return [
        Device(id=d.id, kind=str(d.device_kind), process_index=int(d.process_index))
        for d in backend.devices()
    ]
