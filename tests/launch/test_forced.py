"""The flags that stand for a pod of CPU devices."""

import importlib.metadata
import subprocess
import sys

import pytest

from jaxscope.launch import forced


def test_devices_are_asked_for_and_given_time_to_meet():
    env = {}
    assert forced.force(env, 512) == 512
    assert env["JAX_PLATFORMS"] == "cpu"
    assert env["XLA_FLAGS"].split() == [f"{forced.FLAG}=512", f"{forced.PATIENCE}={forced.PATIENCE_S}"]


def test_what_the_environment_says_itself_stays():
    env = {"XLA_FLAGS": f"--xla_x=1 {forced.PATIENCE}=7", "JAX_PLATFORMS": "cuda"}
    assert forced.force(env, 8) == 8
    assert env == {"XLA_FLAGS": f"--xla_x=1 {forced.PATIENCE}=7 {forced.FLAG}=8", "JAX_PLATFORMS": "cuda"}
    for own in ({"XLA_FLAGS": f"{forced.FLAG}=4"}, {forced.SETTING: "4"}):
        env = dict(own)
        assert forced.force(env, 8) is None
        assert env == {**own, "JAX_PLATFORMS": "cpu"}


@pytest.mark.parametrize("version", ["0.9.2", "odd", None])
def test_a_flag_that_a_jaxlib_may_not_know_is_not_given_to_it(monkeypatch, version):
    def installed(name):
        if version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(importlib.metadata, "version", installed)
    env = {}
    forced.force(env, 8)
    assert env["XLA_FLAGS"] == f"{forced.FLAG}=8"


@pytest.mark.capture
def test_this_jaxlib_knows_the_flags(clean_env):
    env = dict(clean_env)
    forced.force(env, 4)
    code = "import jax; print(jax.device_count(), jax.jit(lambda x: x + 1)(1))"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=240)
    assert done.stdout.split() == ["4", "2"], done.stderr
