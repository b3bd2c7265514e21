"""JAX tries each accelerator whose package is installed, and prints errors where there is none: who is told
why."""

import pytest

from jaxscope.report import text
from jaxscope.schema import events as ev

pytestmark = [pytest.mark.capture, pytest.mark.costly]
PROGRAM = "import jax, jax.numpy as jnp; jax.jit(jnp.sin)(1.0)"


def test_the_summary_names_what_jax_looked_for_in_vain_and_how_to_leave_that_out(record, tmp_path):
    plugin = tmp_path / "packages" / "jax_cuda13_plugin"
    plugin.mkdir(parents=True)
    (plugin / "__init__.py").write_text("")
    env = {"PYTHONPATH": str(plugin.parent), "JAX_PLATFORMS": ""}
    tried, chosen = record(PROGRAM, env=env), record(PROGRAM, env={**env, "JAX_PLATFORMS": "cpu"})
    ((backend,), (other,)) = (done.of(ev.BackendSeen) for done in (tried, chosen))
    assert backend.platform == other.platform == "cpu"
    assert "jax_cuda13_plugin" in backend.in_vain and other.in_vain == []
    said = " ".join(text.summary(tried.run).split())
    assert "jax-cuda13-plugin" in said and "JAX_PLATFORMS=cpu in the environment avoids them" in said
    assert "JAX_PLATFORMS" not in text.summary(chosen.run)
