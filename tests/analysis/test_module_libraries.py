"""Which library a loop or a gradient is written with."""

import pytest

from jaxscope.analysis import module_libraries
from jaxscope.schema.keys import Frame

PACKAGES = "/venv/lib/python3.12/site-packages"


@pytest.mark.parametrize(
    ("source", "wrappers", "library"),
    [
        ("from flax import nnx\nnnx.value_and_grad(loss)(model)", [], "flax.nnx"),
        ("import flax.nnx as x\nx.grad(loss)(model)", ["jax.jit"], "flax.nnx"),
        ("import equinox as eqx\neqx.filter_grad(loss)(model)", [], "equinox"),
        ("import jax\njax.grad(loss)(model)", ["flax.nnx.jit"], None),
        ("import jax\nfrom flax import nnx\njax.grad(f)(w); nnx.grad(f)(w)", ["flax.nnx.jit"], "flax.nnx"),
        ("import jax\nfrom flax import nnx\njax.grad(f)(w); nnx.grad(f)(w)", [], None),
        ("def grad(f): ...\ngrad(f)(w)", ["equinox.filter_jit"], "equinox"),
        ("not Python", [], None),
        (None, ["flax.nnx.jit"], "flax.nnx"),
        (None, [], None),
    ],
)
def test_the_library_of_gradients_is_that_of_the_file_else_that_of_the_jit(source, wrappers, library):
    assert module_libraries.of_gradients(source, wrappers) == library


@pytest.mark.parametrize(
    ("files", "library"),
    [
        ([f"{PACKAGES}/jax/_src/numpy/x.py", f"{PACKAGES}/flax/nnx/nn/linear.py"], "flax.nnx"),
        ([f"{PACKAGES}/flax/linen/linear.py", f"{PACKAGES}/flax/nnx/nn/linear.py"], "flax.linen"),
        ([f"{PACKAGES}/flax/training/train_state.py", f"{PACKAGES}/haiku/_src/basic.py"], "haiku"),
        (["/home/me/equinox/train.py"], None),  # a directory of the user
        (["/home/me/src/equinox/nn/_linear.py"], "equinox"),  # a clone
        (["C:\\venv\\site-packages\\equinox\\nn\\_linear.py"], "equinox"),
        ([], None),
    ],
)
def test_the_library_of_a_stack_is_that_of_its_first_frame_in_a_library_of_modules(files, library):
    assert module_libraries.nearest([Frame(file, 1, "f") for file in files]) == library


def test_a_library_without_functions_of_its_own_has_those_of_jax():
    assert module_libraries.spelling("haiku").value_and_grad == "jax.value_and_grad"
    assert module_libraries.spelling(None) == module_libraries.JAX == module_libraries.spelling("torch")
