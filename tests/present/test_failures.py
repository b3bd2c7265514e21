"""Why a program failed, in words."""

import pytest

from jaxscope.present.failures import removed
from jaxscope.present.spans import plain
from jaxscope.schema.events import Died


@pytest.mark.parametrize(
    ("error", "message", "library", "words"),
    [
        (
            "AttributeError", "module 'jax' has no attribute 'tree_map'", None,
            "jax.tree_map was removed in JAX 0.6.0: write jax.tree.map",
        ),
        (
            "AttributeError", "module 'jax' has no attribute 'tree_map'", "oldpackage",
            "jax.tree_map was removed in JAX 0.6.0: oldpackage uses it; install a newer oldpackage",
        ),
        (
            "ImportError", "cannot import name 'PositionalSharding' from 'jax.sharding' (jax/sharding.py)", None,
            "jax.sharding.PositionalSharding was removed from JAX: write jax.sharding.NamedSharding",
        ),
        (
            "AttributeError", "module 'jax.sharding' has no attribute 'Shard'", None,
            "JAX has no jax.sharding.Shard: write x.addressable_shards, whose elements are the shards",
        ),
        (
            "TypeError", "softmax() got an unexpected keyword argument 'initial'", None,
            "jax.nn.softmax(initial=) was removed in JAX 0.4.36; nothing replaces it",
        ),
        ("ValueError", "bad value", None, ""),
    ],
)  # fmt: skip
def test_a_program_that_used_a_removed_name_gets_its_replacement(error, message, library, words):
    assert plain(removed(Died(error=error, message=message, library=library))) == words
