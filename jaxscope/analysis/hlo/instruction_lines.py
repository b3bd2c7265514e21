"""Find the line of the user's code for each instruction and each GPU kernel of a compiled program, by its
name. A profile of a run contains these names."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from jaxscope.analysis.hlo.attribution import Attribution
from jaxscope.analysis.hlo.calls import CallGraph
from jaxscope.analysis.hlo.module import Instruction, Module
from jaxscope.analysis.hlo.reader import read
from jaxscope.schema.keys import Frame

LIBRARY_KERNEL = re.compile(
    r"gemm|gemv|nvjet|cutlass|cublas|cudnn|fprop|dgrad|wgrad|fmha|flash", re.IGNORECASE
)
_LIBRARY_CALL = re.compile(r'custom_call_target="__cu(?:blas|dnn)')
_CALLED = re.compile(r"\bcalls=%?([\w.-]+)")


class Located(msgspec.Struct, frozen=True):
    """An instruction of a compiled program: its opcode and the line of the user's code (None: unknown)."""

    opcode: str
    line: Frame | None


def of(text: str, user_files: Iterable[str] = ()) -> dict[str, Located]:
    """Return the opcode and the source line of every instruction of a compiled program: name of the
    instruction -> ``Located``. The GPU kernels of the program are also included, by ``kernel_key``.
    ``user_files`` are files that are the user's own although they are in a library's directory."""
    module = read(text, user_files)
    calls = CallGraph(module, tuple({i.opcode for c in module.computations.values() for i in c.instructions}))
    attribution = Attribution(module, calls)
    found: dict[str, Located] = {}
    kernels: dict[object, list[tuple[str, Located]]] = {}
    for c in module.computations.values():
        for i in c.instructions:
            located = found[i.name] = Located(i.opcode, attribution.line(c, i))
            code = _kernel_code(module, i)
            if code is not None:
                kernels.setdefault(code, []).append((i.name, located))
    for same in kernels.values():
        lines = {located.line for _, located in same}
        line = lines.pop() if len(lines) == 1 else None
        for name, located in same:
            key = kernel_key("cublas" if located.opcode == "custom-call" else name)
            found[key] = Located(located.opcode, line)
    return found


def kernel_key(kernel: str) -> str:
    """Return the key, in the result of ``of``, of the GPU kernel with the name ``kernel``. XLA names the
    kernel of the fusion ``loop_add_fusion.2`` ``loop_add_fusion_2``. All kernels of NVIDIA's libraries have
    one key, because their names do not name an instruction."""
    name = "library" if LIBRARY_KERNEL.search(kernel) else re.sub(r"[.-]", "_", kernel)
    return f"kernel {name}"


def _kernel_code(module: Module, instruction: Instruction) -> object:
    """Return a value that is equal for two instructions of ``module`` if they may run the same GPU kernel;
    None if the instruction runs no kernel of its own. XLA compiles equal fusions to one kernel, which has the
    name of one of them. All calls of NVIDIA's libraries count as one kernel."""
    if instruction.opcode == "custom-call":
        return "library" if _LIBRARY_CALL.search(instruction.tail) else None
    called = _CALLED.search(instruction.tail) if instruction.opcode == "fusion" else None
    computation = module.computations.get(called[1]) if called else None
    if computation is None:
        return None
    return tuple((i.opcode, i.shape) for i in computation.instructions)
