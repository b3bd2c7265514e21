"""Every private name has one address, and losing one costs a field."""

import pytest

from jaxscope.schema import events as ev

pytestmark = pytest.mark.capture


def test_every_seam_is_there_on_this_jax():
    from jaxscope import jax_internals

    assert [(s.name, s.reason) for s in jax_internals.table() if not s.available] == []


@pytest.mark.parametrize(
    ("gone", "seam", "lost"),
    [
        ("from jax._src import config; del config.trace_context_names", "trace_context", "context"),
        ("from jax._src import pjit; pjit._trace_for_jit = lambda *a: None", "trace_frame", None),
        ("from jax._src import util; del util.test_event_listener", "miss_event", None),
        ("import jax; del jax.monitoring.register_scalar_listener", "phase_starts", None),
        ("from jax._src import array; array.ArrayImpl._value = property(lambda x: x)", "host_copies", None),
        ("from jax._src.interpreters import pxla; pxla.batched_device_put = print", "device_puts", None),
        ("from jax._src import array; array._array_shard_arg = print", "device_copies", None),
    ],
)
def test_a_seam_that_is_missing_is_named_in_the_log_and_by_doctor(gone, seam, lost, record):
    """Only the table is read here: the seam is put back before the program goes on."""
    run = record(
        f"""
        import jax, jaxscope
        from jaxscope.capture import session
        from jaxscope import jax_internals
        session.stop()
        real = {{}}
        {gone}
        missing = [(s.name, s.reason) for s in jax_internals.table() if not s.available]
        print([n for n, _ in missing], all(r for _, r in missing))
        """,
        check=False,
    )
    names, explained = run.out.rsplit(" ", 1)
    assert seam in names and explained.strip() == "True", run.err
    assert lost is None or lost in seam


def test_a_recording_goes_on_without_the_trace_context_and_says_so(record):
    run = record(
        """
        import jax, jax.numpy as jnp, jaxscope
        from jaxscope.capture import session
        session.stop()
        from jax._src import config
        names = config.trace_context_names
        del config.trace_context_names
        with jaxscope.record("without"):
            jax.jit(lambda x: x + 1)(jnp.ones(3))
        config.trace_context_names = names
        from jaxscope.log import reader, store; from jaxscope.schema import events as ev
        events = list(reader.read(store.RunDir("without")))
        print([(e.seam, "trace_context_names" in e.reason) for e in events if isinstance(e, ev.Degraded)])
        keys = [e.key for e in events if isinstance(e, ev.Missed)]
        print({k.context for k in keys}, all(k.arguments for k in keys[-1:]), sum(isinstance(e, ev.Compiled) for e in events) > 0)
        """
    )
    assert run.out.splitlines() == ["[('trace_context', True)]", "{None} True True"]


def test_a_jax_outside_the_tested_versions_is_called_so():
    from jaxscope import jax_internals

    assert jax_internals.untested("0.10.0") is None and jax_internals.untested("0.12.9") is None
    assert "newer" in jax_internals.untested("0.13.1") and "older" in jax_internals.untested("0.9.2")
    assert jax_internals.untested("a.b") is None and ev.SCHEMA == 1
