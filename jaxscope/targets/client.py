"""The process in which the compiler of a target runs. A target is an accelerator that need not exist here.

The process reads the paths of job files from stdin, one in each line. A job is one program to compile for one
target; its result is written to a file in the run directory. The compiler is large (libtpu: 640 MB), prints
to stderr, takes locks and may abort, so it must not run in a process that does other work.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import resource
import shlex
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from jaxscope.capture import texts
from jaxscope.log.jobs import EXHAUSTED, FAILED, MISSING, Job, Queue
from jaxscope.log.store import RunDir
from jaxscope.schema.events import TargetCompiled
from jaxscope.schema.targets import Target
from jaxscope.targets import gpus

NO_MEMORY = "RESOURCE_EXHAUSTED"


def main(directory: str) -> None:
    """Compile jobs (one program for one target each) of the run in ``directory`` until stdin ends. Each line
    of stdin is the path of a job file."""
    run = RunDir(directory)
    queue = Queue(run)
    if gpus.plugin() is not None:
        os.environ["XLA_FLAGS"] = gpus.flags(os.environ.get("XLA_FLAGS", ""))  # XLA reads it once
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    topologies: dict[str, list[Any]] = {}
    for line in sys.stdin:
        path = Path(line.strip())
        if path.name:
            queue.put_result(serve(run, queue, path, topologies))


def serve(run: RunDir, queue: Queue, path: Path, topologies: dict[str, list[Any]]) -> TargetCompiled:
    """Compile one program for one target (an accelerator that need not exist here) and return the result. The
    compiled HLO is written to the directory of ``run``. If the compiler raises an exception or is not
    installed, the result says so; nothing is raised.

    Args:
      queue: the compile jobs of the run, from which the job and its program are read.
      path: the file that describes the job: the target and compile options.
      topologies: {name of a target: its devices}. The target of the job is added, so that later jobs can use
        the same devices.
    """
    job = queue.job(path)
    lacking = missing(job.target.platform)
    if lacking is not None:
        return TargetCompiled(program=job.id, outcome=MISSING, error=lacking.sentence)
    started = time.monotonic()
    try:
        name = job.target.name
        if name not in topologies:
            topologies[name] = devices_of(job.target)
        executable = compile_job(job, queue.module(job.id), topologies[name])
    except Exception as e:
        message = str(e).strip() or type(e).__name__
        outcome = EXHAUSTED if NO_MEMORY in message[:400] else FAILED
        if outcome == FAILED and 1 < job.partitions < job.target.devices:
            # libtpu accepts a block of a slice's chips, but on a row of chips one of its own checks fails.
            message = (
                f"the program uses {job.partitions:,} of the {job.target.devices:,} devices of"
                f" {job.target.name}, and the compiler may not support that subset: {message}"
            )
        return TargetCompiled(
            program=job.id,
            outcome=outcome,
            seconds=time.monotonic() - started,
            error=message[:20_000],
            compiler=compiler_version(job.target.platform),
            process_bytes=_most_memory(),
        )
    seconds = time.monotonic() - started
    text, size = run.put_text(texts.hlo(executable))
    stats = executable.get_compiled_memory_stats()
    peak = getattr(stats, "peak_memory_in_bytes", None)
    try:
        cost = texts.cost(executable)
    except Exception:  # not every compile-only client has a cost analysis
        cost = {}
    return TargetCompiled(
        program=job.id,
        seconds=seconds,
        text=text,
        text_bytes=size,
        memory=texts.memory(executable),
        peak_bytes=peak if isinstance(peak, int) and peak > 0 else None,
        cost=cost,
        compiler=compiler_version(job.target.platform),
        process_bytes=_most_memory(),
    )


class NotInstalled(NamedTuple):
    """A compiler that is not installed.

    Attributes:
      what: says which compiler is missing: ``the TPU compiler (libtpu) is not installed``.
      command: the command that installs it: ``pip install 'jaxscope[tpu]'``.
    """

    what: str
    command: str

    @property
    def sentence(self) -> str:
        """Return one line of text: which compiler is missing, and the command that installs it."""
        return f"{self.what}: {self.command}"


def missing(platform: str) -> NotInstalled | None:
    """Return the missing compiler for ``platform``, with the command that installs it. None if the compiler
    is installed. Any platform other than ``tpu`` means CUDA GPUs."""
    if platform == "tpu":
        if os.environ.get("TPU_LIBRARY_PATH") or importlib.util.find_spec("libtpu") is not None:
            return None
        return NotInstalled("the TPU compiler (libtpu) is not installed", install("tpu"))
    if gpus.plugin() is not None:
        return None
    return NotInstalled("the GPU compiler (JAX's CUDA plugin and nvcc) is not installed", install("gpu"))


def install(extra: str) -> str:
    """Return the command that installs jaxscope with the optional requirements ``extra``: ``pip install
    'jaxscope[tpu]'`` for ``tpu``. In a source checkout whose installed package does not declare ``extra``,
    the command has the path of the checkout instead of ``jaxscope``."""
    try:
        extras = importlib.metadata.metadata("jaxscope").get_all("Provides-Extra") or []
    except importlib.metadata.PackageNotFoundError:
        extras = []
    home = Path(__file__).parents[2]
    source = "jaxscope" if extra in extras or not (home / "pyproject.toml").is_file() else str(home)
    return f"pip install {shlex.quote(f'{source}[{extra}]')}"


def compiler_version(platform: str) -> str | None:
    """Return the name and version of the installed package with the compiler for ``platform``
    (``libtpu 0.0.42``); None: not installed. Any platform other than ``tpu`` means CUDA GPUs."""
    name = "libtpu" if platform == "tpu" else (gpus.plugin() or "").replace("_", "-")
    try:
        return f"{name} {importlib.metadata.version(name)}" if name else None
    except importlib.metadata.PackageNotFoundError:
        return None


def devices_of(target: Target) -> list[Any]:
    """Return JAX device objects for all devices of ``target``, in the compiler's order. Programs can be
    compiled for these devices although the machine does not exist here.

    Raises:
      Exception: the compiler does not support this grid of chips.
    """
    from jax.experimental import topologies

    grid = "x".join(map(str, target.grid))
    if target.platform == "cuda":
        card = gpus.CARDS[target.machine]
        # Slices x hosts x GPUs of a host; all hosts are one slice to XLA where they share a fast network.
        found = topologies.get_topology_desc(
            target.machine, platform="cuda", target_config=gpus.config(card), topology=f"1x{grid}"
        )
        return list(found.devices)
    more: dict[str, Any] = {"num_slices": target.slices} if target.slices > 1 else {}
    # How many chips of the slice are on one host; a host has 2x2 chips. libtpu 0.0.42 needs this for the
    # grids 1x1 and 1x4, 0.0.50 does not.
    if 1 in target.grid[:2]:
        more["chips_per_host_bounds"] = (min(2, target.grid[0]), min(2, target.grid[1]), 1)
    if target.machine == "v4":
        # One device for each chip, as on Cloud TPUs; libtpu's default is two
        more["chip_config_name"] = "megacore"
    found = topologies.get_topology_desc(f"{target.machine}:{grid}", platform=target.platform, **more)
    return list(found.devices)


def compile_job(job: Job, module: bytes, devices: list[Any]) -> Any:
    """Compile ``module``, a program as MLIR bytecode, with the options that JAX would use, and return XLA's
    executable.

    Args:
      job: the compile options of the program, its target (an accelerator that need not exist here), and which
        devices of the target it uses.
      devices: JAX device objects for all devices of the target.

    Raises:
      ValueError: the target has fewer devices than the program needs.
      Exception: an error of the compiler.
    """
    import jax
    import numpy as np
    from jaxlib.mlir import ir

    from jaxscope.jax_internals import attributes

    config: Any = jax.config

    if job.shardy is not None:
        config.update("jax_use_shardy_partitioner", job.shardy)
    at = job.positions if job.positions is not None else list(range(job.partitions))
    if len(devices) < job.partitions or max(at, default=0) >= len(devices):
        raise ValueError(
            f"the program runs on {job.partitions} devices, {job.target.name} has {len(devices)}"
        )
    chosen = np.array([devices[i] for i in at], dtype=object)
    client = devices[0].client
    with attributes.MLIR_CONTEXT() as context:
        computation = ir.Module.parse(module, context)
        options = attributes.COMPILE_OPTIONS(
            computation,
            job.tuple_arguments,
            job.propagate_to_inputs,
            job.propagate_to_outputs,
            client,
            chosen,
            dict(job.options),
        )
        taken = attributes.XLA_CLIENT.needed().DeviceList(tuple(chosen))
        return client.compile(computation, executable_devices=taken, compile_options=options)


def _end_with(parent: int) -> None:
    """Wait until ``parent``, the process that started this process, has ended. Then end this process, because
    nobody needs the result of its compilation."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _most_memory() -> int:
    """Return the peak memory of this process in bytes. The operating system states ``ru_maxrss`` in KiB on
    Linux and in bytes on macOS."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


if __name__ == "__main__":
    main(sys.argv[1])
