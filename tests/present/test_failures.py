"""Why a program failed, in words."""

import pytest

from jaxscope.model.run import Run
from jaxscope.present.failures import removed
from jaxscope.present.spans import plain
from jaxscope.schema.events import Died, RunStarted


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
            "jax.sharding.PositionalSharding was removed in JAX 0.7.0: write jax.sharding.NamedSharding",
        ),
        (
            "AttributeError", "module 'jax.sharding' has no attribute 'Shard'", None,
            "JAX has no jax.sharding.Shard: write x.addressable_shards, whose elements are the shards",
        ),
        (
            "AttributeError", "module 'jax' has no attribute 'mask'", None,
            "jax.mask was removed in JAX 0.3.16; nothing replaces it",
        ),
        ("ValueError", "bad value", None, ""),
    ],
)  # fmt: skip
def test_a_program_that_used_a_removed_name_gets_its_replacement(error, message, library, words):
    run = Run()
    run.apply(RunStarted(how="run", cwd="/w", jax="0.12.0"))
    run.apply(Died(error=error, message=message, library=library))
    assert plain(removed(run)) == words
