"""Find the line of the user's code for the name of an instruction or a GPU kernel of a compiled program.
These names are in the profile of a run."""

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
    """An instruction of a compiled program: its opcode and its Python line (None: unknown)."""

    opcode: str
    line: Frame | None


def of(text: str, user_files: Iterable[str] = ()) -> dict[str, Located]:
    """Return the opcode and the source line of every instruction of a compiled program: name of the
    instruction -> ``Located``. The result also has the GPU kernels of the program, under the names that
    ``kernel_key`` returns. If instructions with different lines may run the same kernel, the kernel's line is
    None.

    Args:
      text: the HLO of the program.
      user_files: files that are the user's own although they are in a library's directory.
    """
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
    """Return the key of the GPU kernel ``kernel`` in the result of ``of``: ``kernel loop_add_fusion_2`` for
    ``loop_add_fusion_2``, which is XLA's name for the kernel of the fusion ``loop_add_fusion.2``. The key is
    ``kernel library`` for all kernels of NVIDIA's libraries."""
    name = "library" if LIBRARY_KERNEL.search(kernel) else re.sub(r"[.-]", "_", kernel)
    return f"kernel {name}"


def _kernel_code(module: Module, instruction: Instruction) -> object:
    """Return a value that is equal for two instructions that may run the same GPU kernel. Return None if the
    instruction is neither a fusion nor a call of NVIDIA's libraries."""
    # All calls of NVIDIA's libraries count as one kernel. XLA compiles equal fusions to one kernel, which has
    # the name of one of them.
    if instruction.opcode == "custom-call":
        return "library" if _LIBRARY_CALL.search(instruction.tail) else None
    called = _CALLED.search(instruction.tail) if instruction.opcode == "fusion" else None
    computation = module.computations.get(called[1]) if called else None
    if computation is None:
        return None
    return tuple((i.opcode, i.shape) for i in computation.instructions)
