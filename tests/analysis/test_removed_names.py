"""A name that JAX no longer has is named together with what replaces it."""

import importlib
import re

import pytest

from jaxscope.analysis import removed_names
from jaxscope.analysis.removed_names import ARGUMENTS, NAMES, NEVER, find


@pytest.mark.parametrize(
    ("error", "message", "name", "instead", "version"),
    [
        ("AttributeError", "module 'jax' has no attribute 'tree_map'", "jax.tree_map", "jax.tree.map", "0.6.0"),
        (
            "ImportError",
            "cannot import name 'PositionalSharding' from 'jax.sharding' (/x/jax/sharding.py)",
            "jax.sharding.PositionalSharding", "jax.sharding.NamedSharding", None,
        ),
        (
            "ModuleNotFoundError", "No module named 'jax.experimental.maps'", "jax.experimental.maps",
            "jax.shard_map, and jax.sharding.Mesh", "0.4.31",
        ),
        ("ModuleNotFoundError", "No module named 'jax.config'", "jax.config", "from jax import config", "0.4.29"),
        (
            "AttributeError", "jax.device_put_sharded is deprecated; use jax.device_put instead.",
            "jax.device_put_sharded", "jax.device_put with a NamedSharding", "0.10.0",
        ),
        (
            "AttributeError", "'jaxlib._jax.ArrayImpl' object has no attribute 'to_py'", "Array.to_py",
            "numpy.asarray(x)", None,
        ),
        ("AttributeError", "DynamicJaxprTracer has no attribute split", "Array.split", "jax.numpy.split", "0.4.14"),
        (
            "AttributeError", "arr.device_buffer has been deprecated. Use arr.addressable_data(0)",
            "Array.device_buffer", "x.addressable_data(0)", "0.4.27",
        ),
        (
            "TypeError", "'jaxlib._jax.Device' object is not callable", "Array.device()",
            "x.devices(), or x.device without parentheses", "0.4.27",
        ),
        (
            "TypeError", "clip() got an unexpected keyword argument 'a_max'", "jax.numpy.clip(a_max=)", "max", "0.10.0",
        ),
        (
            "TypeError", "shard_map() got an unexpected keyword argument 'check_rep'. Did you mean 'check_vma'?",
            "jax.shard_map(check_rep=)", "check_vma", NEVER,
        ),
        (
            "TypeError", "ShapeDtypeStruct.__init__() got an unexpected keyword argument 'vma'",
            "jax.ShapeDtypeStruct(vma=)", "manual_axis_type", "0.10.0",
        ),
    ],
)  # fmt: skip
def test_an_error_about_a_removed_name_leads_to_its_replacement(error, message, name, instead, version):
    assert find(error, message) == (name, instead, version)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ("ValueError", "module 'jax' has no attribute 'tree_map'"),
        ("AttributeError", "module 'jax' has no attribute 'tree_mop'"),
        ("AttributeError", "module 'mine.jax' has no attribute 'tree_map'"),
        ("AttributeError", "'Model' object has no attribute 'split'"),
        ("ModuleNotFoundError", "No module named 'jaxopt'"),
        ("ModuleNotFoundError", "No module named 'jax'"),
        ("TypeError", "train_step() got an unexpected keyword argument 'a_max'"),
        ("AttributeError", ""),
    ],
)
def test_other_errors_are_about_no_removed_name(error, message):
    assert find(error, message) is None


def test_a_name_inside_a_removed_module_is_gone_with_it():
    found = find("ImportError", "cannot import name 'call' from 'jax.experimental.host_callback' (x.py)")
    assert found.name == "jax.experimental.host_callback"


def exists(name):
    """Return whether the installed JAX has ``name``: a module, or an attribute of one."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:n]))
        except ImportError:
            continue
        try:
            for part in parts[n:]:
                found = getattr(found, part)
        except AttributeError:
            return False
        return True
    return False


def installed():
    import jax

    return tuple(map(int, jax.__version__.split(".")[:3]))


@pytest.mark.capture
def test_the_installed_jax_has_none_of_the_names_and_all_of_their_replacements():
    import jax

    assert len(NAMES) + len(ARGUMENTS) >= 60
    of_modules = {name: value for name, value in NAMES.items() if name.startswith("jax.")}
    for name, (_, version) in of_modules.items():
        later = version not in (None, NEVER) and tuple(map(int, version.split("."))) > installed()
        if not later and name != "jax.config":  # the module is gone; an attribute has its name
            assert not exists(name), name
    with pytest.raises(ImportError):
        importlib.import_module("jax.config")
    for instead, _ in (*NAMES.values(), *ARGUMENTS.values()):
        for replacement in re.findall(r"jax\.[\w.]*\w", instead):
            # jax.extend.random and others are modules that must be imported; a configuration flag is an attribute.
            assert exists(replacement), replacement
    x = jax.numpy.ones(2)
    for name in NAMES:
        kind, _, attribute = name.rstrip("()").partition(".")
        if kind == "Array" and attribute != "device":  # which is no longer a method
            assert not hasattr(x, attribute), name
    assert not callable(x.device)


@pytest.mark.capture
def test_no_function_of_the_installed_jax_takes_the_removed_arguments():
    import inspect

    for name, argument in ARGUMENTS:
        module, _, function = name.rpartition(".")
        if exists(name):
            signature = inspect.signature(getattr(importlib.import_module(module), function))
            assert argument not in signature.parameters, (name, argument)


def test_each_entry_of_a_function_and_argument_is_found_by_its_error():
    for (name, argument), (instead, version) in ARGUMENTS.items():
        message = f"{name.rpartition('.')[2]}() got an unexpected keyword argument '{argument}'"
        assert find("TypeError", message) == removed_names.Removed(f"{name}({argument}=)", instead, version)
