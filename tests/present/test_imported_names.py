"""Advice uses the names by which the user's file imports JAX and NumPy."""

import pytest

from jaxscope.present.findings import fix_text
from jaxscope.present.imported_names import ImportedNames
from jaxscope.schema.findings import CERTAIN, WARNING, Finding, Fix
from jaxscope.schema.messages import message


@pytest.mark.parametrize(
    ("imported", "ours", "theirs"),
    [
        ({"jax": "jax"}, "jax.jit(f)", "jax.jit(f)"),
        ({"jax": "jax"}, "use jnp.where", "use jax.numpy.where"),
        ({"jit": "jax.jit"}, "call jax.jit(f)", "call jit(f)"),
        ({"lax": "jax.lax"}, "jax.lax.scan over x", "lax.scan over x"),
        ({"scan": "jax.lax.scan"}, "jax.lax.scan over x", "scan over x"),
        ({"np": "jax.numpy", "onp": "numpy"}, "np.pad, not jnp.pad", "onp.pad, not np.pad"),
        ({"P": "jax.sharding.PartitionSpec"}, "PartitionSpec('data')", "P('data')"),
        ({"partial": "functools.partial"}, "because functools.partial binds it", "because partial binds it"),
        ({"onp": "numpy"}, "open my/np.py, 'np.asarray' or x.np.asarray", None),
        ({"onp": "numpy"}, "{np.a} of JAX", None),
    ],
)
def test_names_are_those_that_the_file_imports(
    imported: dict[str, str], ours: str, theirs: str | None
) -> None:
    names = ImportedNames(imported)
    assert names.written(ours) == (ours if theirs is None else theirs)
    assert names.missing == []


def test_missing_imports_are_listed_once() -> None:
    names = ImportedNames({"jnp": "jax.numpy"})
    assert (
        names.written("np.pad(x), then jax.jit(f) and jax.vmap") == "np.pad(x), then jax.jit(f) and jax.vmap"
    )
    assert names.missing == ["import numpy as np", "import jax"]


def test_a_name_that_means_something_else_is_not_used() -> None:
    names = ImportedNames({"np": "jax.numpy"})
    assert names.written("np.pad(x)") == "numpy.pad(x)"
    assert names.missing == ["import numpy"]


def test_a_library_that_the_file_does_not_import_is_not_added() -> None:
    names = ImportedNames({"jax": "jax"})
    assert names.written("use nnx.jit") == "use nnx.jit"
    assert names.missing == []


def test_unknown_imports_change_nothing() -> None:
    names = ImportedNames(None)
    assert names.written("jax.jit(np.x)") == "jax.jit(np.x)"
    assert names.missing == []


def test_the_fix_ends_with_the_missing_imports_and_keeps_the_users_code() -> None:
    words = message("fix-convert-list", name="np.sin(xs)")
    f = Finding("JX604", WARNING, CERTAIN, "", fix=Fix(words, imported={"np": "jax.numpy"}))
    fix = fix_text(f) or ""
    assert "as fast: np.asarray(numpy.array(np.sin(xs)))." in fix
    assert fix.endswith(". Also write at the top of the file: import numpy")
