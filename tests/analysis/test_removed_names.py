"""A name that JAX no longer has is named together with what replaces it."""

import importlib
import re

import pytest

from jaxscope.analysis import removed_names
from jaxscope.analysis.removed_names import ARGUMENTS, CHANGELOG, NAMES, NEVER, Line, find, release


@pytest.mark.parametrize(
    ("error", "message", "name", "instead", "version"),
    [
        ("AttributeError", "module 'jax' has no attribute 'tree_map'", "jax.tree_map", "jax.tree.map", "0.6.0"),
        (
            "ImportError",
            "cannot import name 'PositionalSharding' from 'jax.sharding' (/x/jax/sharding.py)",
            "jax.sharding.PositionalSharding", "jax.sharding.NamedSharding", "0.7.0",
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
            "numpy.asarray(x)", "0.4.1",
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
            "AttributeError", "pl.dot was deprecated in JAX v0.11.0, and removed in JAX v0.12.0. Use jax.numpy.dot.",
            "jax.experimental.pallas.dot", "jax.numpy.dot", "0.12.0",
        ),
        (
            "AttributeError", "jax.interpreters.pxla.Chunked was removed in JAX v0.10.0. Please use `jax.shard_map`.",
            "jax.interpreters.pxla.Chunked", "jax.shard_map", "0.10.0",
        ),
    ],
)  # fmt: skip
def test_an_error_about_a_removed_name_leads_to_its_replacement(error, message, name, instead, version):
    assert find(error, message)[:3] == (name, instead, version)


KEYWORD = "{}() got an unexpected keyword argument '{}'"


@pytest.mark.parametrize(
    ("function", "argument", "source", "name"),
    [
        ("clip", "a_max", "import jax.numpy as jnp\njnp.clip(x, a_max=1)", "jax.numpy.clip(a_max=)"),
        ("clip", "a_max", "import jax\njax.numpy.clip(\n  x,\n  a_max=1)", "jax.numpy.clip(a_max=)"),
        ("clip", "a_max", "from jax.numpy import clip as c\nc(x, **options)", "jax.numpy.clip(a_max=)"),
        ("_clip", "a_max", "import jax\nx.clip(a_max=1)", "Array.clip(a_max=)"),
        (
            "jit", "in_axis_resources", "import functools, jax\n@functools.partial(jax.jit, in_axis_resources=s)",
            "jax.jit(in_axis_resources=)",
        ),
        ("shard_map", "auto", "import jax\njax.shard_map(f, auto=a)", "jax.shard_map(auto=)"),
        (
            "shard_map", "auto", "from jax.experimental.shard_map import shard_map\nshard_map(f, auto=a)",
            "jax.experimental.shard_map.shard_map(auto=)",
        ),
        (
            "ShapeDtypeStruct.__init__", "vma", "import jax\njax.ShapeDtypeStruct(s, d, vma=v)",
            "jax.ShapeDtypeStruct(vma=)",
        ),
    ],
)  # fmt: skip
def test_an_argument_is_removed_if_the_line_passes_it_to_a_function_of_jax(function, argument, source, name):
    if source.endswith(")") and "@" in source:
        source += "\ndef f(x): pass"
    message = KEYWORD.format(function, argument)
    assert find("TypeError", message, [Line(source, 2)]).name == name
    assert find("TypeError", message, [Line(None, 2)]) is None
    assert find("TypeError", message, [Line(source, 1)]) is None
    assert find("TypeError", message, [Line(source, 2)], library=True) is None  # its line is not known


@pytest.mark.parametrize(
    ("function", "argument", "source"),
    [
        ("reshape", "newshape", "import numpy as np, jax.numpy as jnp\nnp.reshape(jnp.ones(4), newshape=(2, 2))"),
        ("solve", "sym_pos", "from scipy.linalg import solve\nsolve(a, b, sym_pos=True)"),
        ("clip", "a_max", "from jax.numpy import clip\nclip(x, a_max=1)\ndef clip(x): pass"),
        ("clip", "a_max", "import jax\nmodel.clip(x, a_max=1)"),
        ("Model.clip", "a_max", "import jax.numpy as jnp\njnp.clip(x, a_max=1)"),
        ("_clip", "a_max", "import jax\n_clip(x, a_max=1)"),
        ("initialize", "communication", "from .distributed import initialize\ninitialize(communication=2)"),
    ],
)  # fmt: skip
def test_an_argument_of_a_function_of_others_is_not_removed(function, argument, source):
    assert find("TypeError", KEYWORD.format(function, argument), [Line(source, 2)]) is None


def test_a_device_is_called_where_jax_or_the_line_makes_it_so():
    assert find("TypeError", "'jaxlib._jax.Device' object is not callable").name == "Array.device()"
    older = "'Device' object is not callable"
    assert find("TypeError", older, [Line("x.device()", 1)]).name == "Array.device()"
    assert find("TypeError", older, [Line("robot(3)", 1)]) is None


def test_with_mesh_is_named_where_the_program_needed_set_mesh():
    message = "The context mesh cannot be empty. Use `jax.set_mesh(mesh)` to enter into a mesh context"
    source = "with self.mesh:\n  step(x)\nwith jax.set_mesh(mesh):\n  step(x)\nwith open(f):\n  step(x)"
    assert find("ValueError", message, [Line(None, 9), Line(source, 2)]) == removed_names.WITH_MESH
    assert find("ValueError", message, [Line("with jax.make_mesh(8, 'x'):\n  step(x)", 2)])
    for line in (4, 6):
        assert find("ValueError", message, [Line(source, line)]) is None
    assert find("ValueError", "bad value", [Line(source, 2)]) is None


def test_what_the_installed_jax_still_has_is_not_removed():
    message = "module 'jax.experimental' has no attribute 'shard_alike'"  # it was not imported
    assert find("AttributeError", message, jax="0.10.2") is None
    assert find("AttributeError", message, jax="0.12.0.1").version == "0.12.0"
    assert find("AttributeError", message, jax="0.13.0.dev20261101").version == "0.12.0"


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


def are_gone(version):
    """Return whether the installed JAX is of the release that removed it, or later."""
    import jax

    return version == NEVER or release(version) <= release(jax.__version__)


@pytest.mark.capture
def test_the_installed_jax_has_none_of_the_names_and_all_of_their_replacements():
    import jax

    assert len(NAMES) + len(ARGUMENTS) >= 60
    for name, (_, version) in NAMES.items():
        if name.startswith("jax.") and name != "jax.config":  # an attribute has the name of the module
            assert exists(name) == (not are_gone(version)), name
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


def raised(statement):
    """Return the name and the text of the exception that ``statement`` raises."""
    with pytest.raises((AttributeError, ImportError)) as caught:
        exec(statement, {})
    return type(caught.value).__name__, str(caught.value)


@pytest.mark.capture
def test_the_errors_of_the_installed_jax_lead_to_each_name():
    import jax

    gone = [name for name, (_, version) in NAMES.items() if name.startswith("jax.") and are_gone(version)]
    assert len(gone) > 100
    for name in gone:
        module, _, last = name.rpartition(".")
        if name == "jax.config":
            assert find(*raised("import jax.config"), jax=jax.__version__).name == name
            continue
        for statement in (f"import {module}\n{name}", f"from {module} import {last}"):
            found = find(*raised(statement), jax=jax.__version__)
            assert found is not None and found.name == name, statement


def test_every_release_is_a_version():
    entries = {name: version for name, (_, version) in NAMES.items()}
    entries |= {f"{name}({argument}=)": version for (name, argument), (_, version) in ARGUMENTS.items()}
    for name, version in entries.items():
        assert version == NEVER or re.fullmatch(r"\d+\.\d+\.\d+", version), name
    assert set(CHANGELOG) <= set(entries)  # of these alone it names another release, or none


@pytest.mark.capture
def test_no_function_of_the_installed_jax_takes_the_removed_arguments():
    import inspect

    for name, argument in ARGUMENTS:
        module, _, function = name.rpartition(".")
        if exists(name) and are_gone(ARGUMENTS[name, argument][1]):
            signature = inspect.signature(getattr(importlib.import_module(module), function))
            assert argument not in signature.parameters, (name, argument)


def test_each_entry_of_a_function_and_argument_is_found_by_its_error():
    for (name, argument), (instead, version) in ARGUMENTS.items():
        module, _, function = name.rpartition(".")
        function, source = (
            (f"_{function}", "x") if module == "Array" else (function, f"import {module}\n{module}")
        )
        lines = [Line(f"{source}.{name.rpartition('.')[2]}({argument}=1)", source.count("\n") + 1)]
        found = find("TypeError", KEYWORD.format(function, argument), lines)
        assert found[:3] == (f"{name}({argument}=)", instead, version)
