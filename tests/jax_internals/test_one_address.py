"""JAX's private names have one address: the package jax_internals."""

import ast

from package_code import nodes

# They read other frames than JAX's: the one for everybody, and the variables of the program that hold arrays.
READS_LOCALS = {"jax_internals/frame_reading.py", "capture/live_arrays/variable_paths.py"}


def is_private(name: str) -> bool:
    root, _, rest = name.partition(".")
    return "jax._src" in name or (root == "jaxlib" and rest.startswith("_")) or "jax.interpreters" in name


# Its table names what JAX has removed, and imports nothing of it.
NAMES_ONLY = "analysis/removed_names.py"


def elsewhere(*classes):
    """Yield (file, node) of the classes in every module outside jax_internals."""
    return (
        (file, node)
        for file, node in nodes(*classes)
        if not file.startswith("jax_internals/") and file != NAMES_ONLY
    )


def test_no_other_module_names_a_private_module_of_jax():
    for file, node in elsewhere(ast.Import, ast.ImportFrom, ast.Constant, ast.Attribute):
        named = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        named += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        named += [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []
        assert not any(map(is_private, named)), (file, named)
        assert not (isinstance(node, ast.Attribute) and node.attr == "_src"), file


def test_no_other_module_reads_the_locals_of_a_frame():
    readers = {file for file, node in nodes(ast.Attribute) if node.attr == "f_locals"}
    assert readers <= READS_LOCALS
    assert len(readers) == 2


def test_no_other_module_reads_a_declared_private_attribute():
    from jaxscope.jax_internals import objects

    private = {n for kind in objects.OBJECTS for n in kind.names.values() if n.startswith("_")}
    private |= {"_committed", "_pjrt_layout", "_device_assignment", "_hlo_sharding", "_internal_device_list"}
    # What every Python program may have of its own.
    private -= {"_name", "_params", "_fun"}
    for file, node in elsewhere(ast.Attribute, ast.Call):
        own = isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in ("self", "cls")
        read = node.attr if isinstance(node, ast.Attribute) and not own else ""
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr":
            read = getattr(node.args[1], "value", "")
        assert read not in private, (file, read)
