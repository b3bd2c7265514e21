"""``run --out s3://...``: the program and its exit never wait for the store longer than the stated time."""

import socket
import subprocess
import sys
import threading
import time

import pytest

from jaxscope.launch import upload
from jaxscope.log import store

pytest.importorskip("fsspec")
pytestmark = pytest.mark.subprocess
PROGRAM = "print('done')\nraise SystemExit(5)\n"
TRAINING = "import jax\nprint(jax.jit(lambda x: x * 2)(jax.numpy.ones(3)))\n"


@pytest.fixture
def run(tmp_path, clean_env):
    """``run(URL, code)``: run a program of this code with ``--out URL``, in a directory of its own."""

    def go(url, code=PROGRAM, command=("run",), **environ):
        (tmp_path / "work").mkdir(exist_ok=True)
        (tmp_path / "work" / "prog.py").write_text(code)
        words = [sys.executable, "-m", "jaxscope", *command, "-o", url, "prog.py"]
        began = time.monotonic()
        done = subprocess.run(
            words,
            cwd=tmp_path / "work",
            env={**clean_env, **environ},
            text=True,
            capture_output=True,
            timeout=100,
        )
        return done, time.monotonic() - began

    return go


def test_the_end_of_the_program_is_in_the_store_when_run_returns(run, tmp_path):
    done, _ = run(f"file://{tmp_path}/bucket/run")
    assert (done.returncode, done.stdout) == (5, "done\n")
    assert f"uploaded to file://{tmp_path}/bucket/run" in done.stderr
    (log,) = (tmp_path / "bucket" / "run" / "events").glob("*.jsonl")
    assert '"exit_code":5' in log.read_text()


def test_a_store_that_cannot_be_written_is_named_with_the_command_for_later(run, tmp_path):
    (tmp_path / "bucket").write_text("a file")
    url = f"file://{tmp_path}/bucket/run"
    done, _ = run(url)
    assert (done.returncode, done.stdout) == (5, "done\n")
    assert "not uploaded to" in done.stderr and " files, " in done.stderr
    command = done.stderr.split("later: ")[1].splitlines()[0].split()
    (tmp_path / "bucket").unlink()
    later = subprocess.run(
        [sys.executable, "-m", *command], cwd=tmp_path / "work", text=True, capture_output=True, timeout=60
    )
    assert later.returncode == 0, later.stderr
    assert list((tmp_path / "bucket" / "run" / "events").glob("*.jsonl"))


def test_a_process_that_makes_no_progress_is_ended_after_the_stated_time(tmp_path, monkeypatch):
    record = store.create(tmp_path / "run")
    monkeypatch.setattr(upload, "QUIET_S", 0.3)
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], stdin=subprocess.PIPE)
    began = time.monotonic()
    state = upload.finish(process, record)
    assert time.monotonic() - began < 50 and process.returncode is not None
    assert "has not answered" in state.error


@pytest.fixture
def s3(tmp_path):
    """The address of an S3 server on loopback, with a bucket, as environment variables."""
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    boto3 = pytest.importorskip("boto3")
    server.start()
    host, port = server.get_host_and_port()
    given = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    client = boto3.client(
        "s3",
        endpoint_url=given["AWS_ENDPOINT_URL"],
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
    )
    client.create_bucket(Bucket="bucket")
    yield given
    server.stop()


@pytest.mark.costly
@pytest.mark.capture
def test_a_job_is_one_run_in_s3_and_is_reported_from_there(run, s3, tmp_path, clean_env):
    done, _ = run("s3://bucket/team/job", TRAINING, ("launch", "-n", "2"), **s3)
    assert done.returncode == 0, done.stderr
    report = subprocess.run(
        [sys.executable, "-m", "jaxscope", "report", "s3://bucket/team/job"],
        cwd=tmp_path,
        env={**clean_env, **s3},
        text=True,
        capture_output=True,
        timeout=100,
    )
    assert report.returncode == 0, report.stderr
    assert "2 processes of one job" in report.stdout and "<lambda>" in report.stdout


@pytest.mark.costly
def test_a_server_that_accepts_and_never_answers_costs_the_stated_time_at_most(run, s3):
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept = []
        threading.Thread(target=lambda: kept.append(server.accept()), daemon=True).start()
        where = f"http://127.0.0.1:{server.getsockname()[1]}"
        done, seconds = run("s3://bucket/run", **{**s3, "AWS_ENDPOINT_URL": where})
    assert (done.returncode, done.stdout) == (5, "done\n") and kept
    assert seconds < upload.QUIET_S + 10
    assert "not uploaded to s3://bucket/run" in done.stderr and "jaxscope runs upload" in done.stderr
