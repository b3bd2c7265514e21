"""What is known of JAX and of the packages around it."""

import pytest

from jaxscope.schema.libraries import keeps_callbacks, transformation


def test_programs_with_callbacks_are_kept_since_jax_0_11():
    assert keeps_callbacks("0.10.2") is False
    assert keeps_callbacks("0.11.0") is True
    assert keeps_callbacks("0.12.0.1") is True
    assert keeps_callbacks("1.0") is True


def test_of_an_unknown_version_nothing_is_claimed():
    assert keeps_callbacks(None) is None
    assert keeps_callbacks("nightly") is None


@pytest.mark.parametrize(
    ("wrapper", "applied"),
    [
        ("haiku.transform.init", "haiku.transform"),
        ("haiku.without_apply_rng.apply", "haiku.without_apply_rng"),
        ("flax.apply", "flax.apply"),
        ("jax.vmap", "jax.vmap"),
    ],
)
def test_only_the_pairs_of_haiku_are_two_functions_of_one_transformation(wrapper, applied):
    assert transformation(wrapper) == applied
