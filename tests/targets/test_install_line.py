"""What is said where a compiler is not installed: a command that works for how jaxscope itself is there."""

import importlib.metadata
from email.message import Message
from pathlib import Path

import pytest

import jaxscope
from jaxscope.cli import targeting
from jaxscope.errors import UsageError
from jaxscope.targets import client


def installed_with(monkeypatch, *extras):
    said = Message()
    for extra in extras:
        said["Provides-Extra"] = extra
    monkeypatch.setattr(importlib.metadata, "metadata", lambda name: said)


@pytest.mark.parametrize("extra", ["tpu", "gpu"])
def test_an_installed_jaxscope_is_given_its_own_extra(monkeypatch, extra):
    installed_with(monkeypatch, "tpu", "gpu")
    assert client.install(extra) == f"pip install 'jaxscope[{extra}]'"


def test_one_that_is_run_from_a_clone_is_installed_from_there(monkeypatch, tmp_path):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "metadata", missing)
    clone = tmp_path / "clone"
    monkeypatch.setattr(client, "__file__", str(clone / "jaxscope" / "targets" / "client.py"))
    assert (
        client.install("tpu") == "pip install 'jaxscope[tpu]'"
    )  # no clone either: whoever has it knows where from
    clone.mkdir()
    (clone / "pyproject.toml").touch()
    assert client.install("tpu") == f"pip install '{clone}[tpu]'"
    installed_with(monkeypatch, "test")  # an editable install from before there was that extra
    assert client.install("tpu") == f"pip install '{clone}[tpu]'"


@pytest.mark.parametrize(
    ("platform", "name", "extra"), [("tpu", "v5e:1x1", "tpu"), ("cuda", "h100:1", "gpu")]
)
def test_an_error_has_the_command_as_its_hint(monkeypatch, platform, name, extra):
    installed_with(monkeypatch, "tpu", "gpu")
    monkeypatch.setattr(client.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(client.gpus, "plugin", lambda: None)
    monkeypatch.delenv("TPU_LIBRARY_PATH", raising=False)
    for call in (lambda: targeting.installed(platform, name), lambda: jaxscope.compile_for(name, len)):
        with pytest.raises(UsageError) as e:
            call()
        assert e.value.message.endswith("is not installed")
        assert e.value.hint == f"pip install 'jaxscope[{extra}]'"


def test_the_extras_are_those_of_the_package():
    import tomllib

    declared = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert {"tpu", "gpu"} <= set(declared["optional-dependencies"])
