"""``jaxscope compile --rest``: what a run from somebody else may not do to the compiler's process."""

import pytest

from jaxscope.cli import resume
from jaxscope.errors import UsageError
from jaxscope.log import store


@pytest.fixture
def run(tmp_path):
    return store.create(
        tmp_path / "run", settings={"XLA_FLAGS": "--xla_dump_to=/etc", "PYTHONPATH": "/tmp/x"}
    )


def test_flags_are_never_taken_from_a_run(run, monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    with pytest.raises(UsageError) as error:
        resume.require_same_flags(run, "latest")
    assert "XLA_FLAGS=--xla_dump_to=/etc" in error.value.message
    assert error.value.hint.endswith("XLA_FLAGS=--xla_dump_to=/etc jaxscope compile --rest latest")


def test_flags_that_the_user_set_are_those_of_the_run(run, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/etc")
    resume.require_same_flags(run, "latest")
