"""What is known of JAX and of the packages around it."""

from jaxscope.schema.libraries import keeps_callbacks


def test_programs_with_callbacks_are_kept_since_jax_0_11():
    assert keeps_callbacks("0.10.2") is False
    assert keeps_callbacks("0.11.0") is True
    assert keeps_callbacks("0.12.0.1") is True
    assert keeps_callbacks("1.0") is True


def test_of_an_unknown_version_nothing_is_claimed():
    assert keeps_callbacks(None) is None
    assert keeps_callbacks("nightly") is None
