"""Find out which multi-process job this process belongs to, and create the run directory for the job.

Only environment variables of launchers (Slurm, mpirun, torchrun, Kubernetes, ...) are read: no backend is
started, no connection is opened and no metadata server is queried. If the launcher gives no rank (number of
the process in the job), ``jax.process_index()`` is read later from the recording.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jaxscope.log import ranks, store
from jaxscope.log.store import RunDir

NAME, RANK, RANKS = "JAXSCOPE_JOB", "JAXSCOPE_RANK", "JAXSCOPE_RANKS"  # set by jaxscope launch or the user
INSIDE = "JAXSCOPE_RUN"  # set in a program that is being recorded, and in its children
LOOPBACK = ("localhost", "127.", "[::1]", "::1", "0.0.0.0")

Environment = Mapping[str, str]


class Job(NamedTuple):
    """The job of several processes to which this process belongs.

    Attributes:
      id: a text that is equal in all processes of the job: ``slurm-4711.0``. Each launch or restart has
        another id if the launcher numbers launches and restarts.
      rank: the number of this process in the job; None: unknown until JAX's backend is initialized.
      size: the number of processes; None: unknown.
      launcher: the program that started the processes (``SLURM``, ``torchrun``); ``name`` if no launcher was
        found and the user named the job.
    """

    id: str
    rank: int | None
    size: int | None
    launcher: str


def detect(environ: Environment, name: str | None = None) -> Job | None:
    """Return the job that the environment variables ``environ`` describe; None if the process belongs to no
    job, or if a recorded program started it. ``name`` is the user's name for the job; None: the variable
    JAXSCOPE_JOB. With a name, the process belongs to a job even without a known launcher; without one, a job
    of one process does not count."""
    if environ.get(INSIDE):
        return None  # a child of a recorded program; that program, not the child, is a process of the job
    found = next((job for launcher in _LAUNCHERS if (job := launcher(environ)) is not None), None)
    name = name or environ.get(NAME)
    if found is not None and found.size == 1 and not name:
        return None
    if name:
        return Job(name, *(found[1:] if found else (None, None, "name")))
    return found


def create_run(
    path: Path | None, job: Job | None, *, name: str | None, overwrite: bool = False, **meta: Any
) -> RunDir:
    """Create and return the directory into which this process records.

    For a process of a job, the directory is inside the run directory of the job, which the first process
    creates. If ``job`` is None, the directory is itself a run directory.

    Args:
      path: the run directory; None: a new directory in the directory of all runs.
      name: the name of the recording; None: the last part of ``path``, or a default name.
      overwrite: whether to replace an existing recording in this directory.
      meta: further values for ``meta.json``, a file in the directory.

    Raises:
      LogError: the directory cannot be created, or is not empty.
    """
    if job is None:
        return store.create(path, name=name, overwrite=overwrite, **meta)
    name = name or (path.name if path is not None else "run")
    return ranks.join(
        path or store.runs_home() / f"{store.clean_name(name)}-{_short(job.id)}",
        job.id,
        job.rank,
        job.size,
        name=name,
        overwrite=overwrite,
        launcher=job.launcher,
        **meta,
    )


def _short(id: str) -> str:
    """Return the job's ``id`` as a part of a file name. If the id is too long or has characters that file
    names may not have, return at most 24 characters of it, with other characters replaced, and a hash."""
    clean = store.clean_name(id)
    return (
        clean
        if clean == id
        else f"{clean[:24]}-{hashlib.sha256(id.encode('utf-8', 'replace')).hexdigest()[:8]}"
    )


def _number(environ: Environment, *names: str) -> int | None:
    """Return the value of the first variable in ``names`` whose value in ``environ`` is a number of one to
    nine digits; None if there is none."""
    for name in names:
        text = environ.get(name, "").strip()
        if text.isascii() and text.isdigit() and len(text) <= 9:
            return int(text)
    return None


def _address(environ: Environment, *names: str) -> str | None:
    """Return the address of a job's coordinator: the value of the first variable in ``names`` that is set in
    ``environ``; None if none is set. A local address gets the host name in front, so that it differs between
    machines: ``localhost:1234`` gives ``host7-localhost:1234``."""
    found = next((environ[name] for name in names if environ.get(name)), None)
    if found is not None and found.startswith(LOOPBACK):
        return f"{socket.gethostname()}-{found}"
    return found


def _own(environ: Environment) -> Job | None:
    """Return the job that the variables of ``jaxscope launch`` describe; None if they are not set."""
    rank = _number(environ, RANK)
    return None if rank is None else Job(environ.get(NAME) or "job", rank, _number(environ, RANKS), "launch")


def _jax(environ: Environment) -> Job | None:
    """Return the job that JAX_COORDINATOR_ADDRESS, JAX_PROCESS_ID and similar variables describe; None if
    they are not set. Programs pass their values to ``jax.distributed.initialize``."""
    address = _address(environ, "JAX_COORDINATOR_ADDRESS", "COORDINATOR_ADDRESS")
    rank = _number(environ, "JAX_PROCESS_ID", "PROCESS_ID")
    if address is None or rank is None:
        return None
    return Job(f"jax-{address}", rank, _number(environ, "JAX_NUM_PROCESSES", "NUM_PROCESSES"), "jax")


def _torchrun(environ: Environment) -> Job | None:
    """Return the job that the variables of torchrun, Ray Train or a similar launcher describe; None if they
    are not set."""
    rank, size = _number(environ, "RANK"), _number(environ, "WORLD_SIZE")
    address = _address(environ, "MASTER_ADDR")
    if rank is None or size is None or address is None:
        return None
    ray = environ.get("RAY_JOB_ID")
    elastic = environ.get("TORCHELASTIC_RUN_ID")
    parts = [
        ray and f"ray-{ray}",
        elastic if elastic != "none" else None,
        f"{address}-{environ.get('MASTER_PORT', '')}".rstrip("-"),
        _restart(environ, "TORCHELASTIC_RESTART_COUNT"),
    ]
    return Job("-".join(part for part in parts if part), rank, size, "ray" if ray else "torchrun")


def _mpi(environ: Environment) -> Job | None:
    """Return the job that the variables of an MPI launcher describe; None if no variable states the rank. The
    launchers are Open MPI, MPICH, Intel MPI, MVAPICH, Cray PALS and others that use PMI or PMIx. All jobs
    have the id ``mpi`` if the launcher states no id. The size may be unknown (None)."""
    rank = _number(
        environ, "OMPI_COMM_WORLD_RANK", "PALS_RANKID", "MV2_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"
    )
    if rank is None:
        return None
    size = _number(environ, "OMPI_COMM_WORLD_SIZE", "PALS_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE")
    names = ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri", "PALS_APID", "PMI_JOBID")
    id = next((environ[name] for name in names if environ.get(name)), None)
    open_mpi = "OMPI_COMM_WORLD_RANK" in environ
    return Job(f"mpi-{id.partition(';')[0]}" if id else "mpi", rank, size, "Open MPI" if open_mpi else "PMI")


def _slurm(environ: Environment) -> Job | None:
    """Return the job that the variables of Slurm's ``srun`` describe; None if not all are set, as in a script
    that ``sbatch`` starts without ``srun``."""
    rank, size = _number(environ, "SLURM_PROCID"), _number(environ, "SLURM_STEP_NUM_TASKS")
    job, step = environ.get("SLURM_JOB_ID"), environ.get("SLURM_STEP_ID")
    if rank is None or size is None or not job or not step:
        return None
    restart = _restart(environ, "SLURM_RESTART_COUNT")
    return Job("-".join(p for p in (f"slurm-{job}.{step}", restart) if p), rank, size, "SLURM")


def _tpu(environ: Environment) -> Job | None:
    """Return the job that the variables of a TPU pod describe; None if they are not set. Ranks are as in JAX:
    (number of the slice) * (workers per slice) + (number of the worker)."""
    hosts = environ.get("TPU_PROCESS_ADDRESSES") or environ.get("TPU_WORKER_HOSTNAMES")
    worker = _number(environ, "TPU_WORKER_ID", "CLOUD_TPU_TASK_ID")
    if not hosts or worker is None:
        return None
    per_slice = len(hosts.split(","))
    slices = _number(environ, "MEGASCALE_NUM_SLICES") or 1
    rank = (_number(environ, "MEGASCALE_SLICE_ID") or 0) * per_slice + worker
    lead = environ.get("MEGASCALE_COORDINATOR_ADDRESS") or hosts.partition(",")[0]
    name = environ.get("JOBSET_NAME") or f"tpu-{lead}"
    restart = _restart(environ, "JOBSET_RESTART_ATTEMPT", "JOB_RESTART_ATTEMPT")
    return Job("-".join(p for p in (name, restart) if p), rank, per_slice * slices, "TPU pod")


def _kubernetes(environ: Environment) -> Job | None:
    """Return the job that the variables of an indexed Kubernetes Job or a JobSet describe; None if they are
    not set. If no variable has the job's name, the name is taken from the host name ``JOB-INDEX-...``."""
    index = _number(environ, "JOB_COMPLETION_INDEX")
    if index is None:
        return None
    host = environ.get("HOSTNAME") or socket.gethostname()
    name = environ.get("JOBSET_NAME") or environ.get("JOB_NAME") or host.partition(f"-{index}-")[0]
    restart = _restart(environ, "JOBSET_RESTART_ATTEMPT", "JOB_RESTART_ATTEMPT")
    id = "-".join(p for p in (name.removesuffix(f"-{index}"), restart) if p)
    if environ.get("JOBSET_NAME"):  # a JobSet has several Jobs, each with indices from 0
        rank = _number(environ, "JOB_GLOBAL_POD_INDEX")
        return Job(id, rank, _number(environ, "JOBSET_PODS"), "JobSet")
    return Job(id, index, _number(environ, "JOB_COMPLETIONS", "NUM_PROCESSES"), "Kubernetes")


def _coordinator(environ: Environment) -> Job | None:
    """Return a job of unknown rank and size if JAX_COORDINATOR_ADDRESS is set, else None. This is for
    programs that pass the rank to ``jax.distributed.initialize`` themselves."""
    address = _address(environ, "JAX_COORDINATOR_ADDRESS")
    return None if address is None else Job(f"jax-{address}", None, None, "jax")


def _restart(environ: Environment, *names: str) -> str | None:
    """Return the part of a job's id that tells restarts apart: ``restart2`` after the second restart; None
    without a restart. ``names`` are the variables in which launchers count restarts."""
    count = _number(environ, *names)
    return f"restart{count}" if count else None


# The innermost launcher first: torchrun and mpirun are themselves started by srun, or in a pod.
_LAUNCHERS: tuple[Callable[[Environment], Job | None], ...] = (
    _own,
    _jax,
    _torchrun,
    _mpi,
    _slurm,
    _tpu,
    _kubernetes,
    _coordinator,
)


def here(name: str | None = None) -> Job | None:
    """Return the job that this process belongs to, as ``detect`` finds the job in the environment variables
    of this process; None: no job. ``name`` is the user's name for the job; None: not given."""
    return detect(os.environ, name)
