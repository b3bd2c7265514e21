"""The job of a process and its rank, from the variables of its launcher."""

import pytest

from jaxscope.launch import job

SLURM = {"SLURM_JOB_ID": "41", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "2"}
TORCHRUN = {"RANK": "2", "WORLD_SIZE": "4", "MASTER_ADDR": "n0", "MASTER_PORT": "29500"}
TPU = {"TPU_WORKER_HOSTNAMES": "h0,h1", "TPU_WORKER_ID": "0"}
SLICES = {
    "MEGASCALE_NUM_SLICES": "2",
    "MEGASCALE_SLICE_ID": "1",
    "MEGASCALE_COORDINATOR_ADDRESS": "lead:8080",
}
JAX = {"JAX_COORDINATOR_ADDRESS": "n0:1234", "JAX_PROCESS_ID": "2", "JAX_NUM_PROCESSES": "4"}


@pytest.mark.parametrize(
    "environ, id",
    [
        (SLURM, "slurm-41.0"),
        ({**SLURM, "SLURM_RESTART_COUNT": "1"}, "slurm-41.0-restart1"),
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "PMIX_NAMESPACE": "9@1"}, "mpi-9@1"),
        ({"PMI_RANK": "2", "PMI_SIZE": "4", "PMI_JOBID": "k"}, "mpi-k"),
        (TORCHRUN, "n0-29500"),
        (
            {**TORCHRUN, "TORCHELASTIC_RUN_ID": "exp", "TORCHELASTIC_RESTART_COUNT": "3"},
            "exp-n0-29500-restart3",
        ),
        ({**TORCHRUN, "RAY_JOB_ID": "07"}, "ray-07-n0-29500"),
        ({**TPU, **SLICES}, "tpu-lead:8080"),
        ({"JOB_COMPLETION_INDEX": "2", "HOSTNAME": "train-2", "JOB_COMPLETIONS": "4"}, "train"),
        (JAX, "jax-n0:1234"),
        ({"JAXSCOPE_JOB": "mine", "JAXSCOPE_RANK": "2", "JAXSCOPE_RANKS": "4"}, "mine"),
        ({**SLURM, **TORCHRUN}, "n0-29500"),
    ],
)
def test_each_launcher_gives_the_job_the_rank_and_the_number_of_ranks(environ, id):
    found = job.detect(environ)
    assert (found.id, found.rank, found.size) == (id, 2, 4)


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"SLURM_JOB_ID": "41", "SLURM_NTASKS": "8", "SLURM_PROCID": "0"},  # the script of sbatch
        {**SLURM, "SLURM_STEP_NUM_TASKS": "1"},
        {**SLURM, "SLURM_PROCID": "-1"},
        {**SLURM, "SLURM_PROCID": "٣"},
        {"RANK": "0"},
        {"TPU_WORKER_HOSTNAMES": "localhost", "TPU_WORKER_ID": "0"},
        {**SLURM, "JAXSCOPE_RUN": "/run"},  # a child of a recorded program
    ],
)
def test_a_process_that_is_alone_or_started_by_a_recorded_program_has_no_job(environ):
    assert job.detect(environ) is None


def test_a_job_without_ranks_in_the_environment_leaves_the_rank_to_the_backend():
    found = job.detect({"JAX_COORDINATOR_ADDRESS": "n0:1234"})
    assert found.id == "jax-n0:1234" and found.rank is None
    assert job.detect({}, "night").id == "night" and job.detect({}, "night").rank is None
    assert job.detect(SLURM, "night")[:2] == ("night", 2)


def test_a_coordinator_of_this_machine_is_another_job_on_another_machine(monkeypatch):
    ids = set()
    for host in ("a", "b"):
        monkeypatch.setattr(job.socket, "gethostname", lambda host=host: host)
        ids.add(job.detect({**JAX, "JAX_COORDINATOR_ADDRESS": "127.0.0.1:1"}).id)
    assert len(ids) == 2


def test_names_of_jobs_that_are_no_file_names_stay_different(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXSCOPE_HOME", str(tmp_path))
    names = ("../x", "..", "x" * 200 + "a", "x" * 200 + "b", "a/b", "a-b")
    made = [job.create_run(None, job.Job(name, 0, 2, "t"), name="train") for name in names]
    assert len({run.path for run in made}) == len(names)
    assert all(run.path.is_relative_to(tmp_path / "runs") for run in made)
