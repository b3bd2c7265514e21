"""Make JAX's cache key of a call, as data (``Key``), from the call's arguments: avals, static values, tree,
shardings, options of jit.

Of JAX's arrays, only metadata is read: this waits for no device, copies no array to the host and keeps no JAX
array alive.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from jaxscope import jax_internals
from jaxscope.capture import paths, rounding, shield
from jaxscope.capture.calls.functions import Serials
from jaxscope.capture.calls.shardings import Shardings, read_sharding
from jaxscope.capture.calls.statics import ADDRESS, entries, limited, opaque
from jaxscope.capture.calls.trees import Nodes, key_path
from jaxscope.capture.calls.wrappers import Compared, JitOptions, UserCall
from jaxscope.jax_internals import JitInfo, known, known_or_none
from jaxscope.schema.keys import Key, Leaf, Static

MAX_STATICS = 5000  # static values of the user that are described in one call of nnx.jit or the like


class Read(NamedTuple):
    """A cache key as data, and references to the arrays among the call's arguments.

    Attributes:
      key: the cache key.
      refs: (position in ``key.arguments``, weak reference) of each jax.Array that is no tracer.
      narrowed: (position in ``key.arguments``, NumPy array) of each NumPy array that JAX converts from 64 to
        32 bits. These arrays are kept alive. Empty if only the flat arguments are known.
    """

    key: Key
    refs: list[tuple[int, weakref.ref[Any]]]
    narrowed: list[tuple[int, np.ndarray[Any, Any]]]


def type_name(value: Any) -> str:
    """Return the type of the argument ``value`` as text for the log: ``jax.Array``, ``Tracer``, ``float``,
    ``numpy.ndarray``. Of a class in a submodule, only the package is named: ``mylib.Config`` for a class in
    ``mylib.settings``. If JAX has replaced an argument of ``f.lower()`` by an object of its own, return the
    type of the argument."""
    import jax

    kind = type(value)
    if issubclass(kind, jax.core.Tracer):
        return "Tracer"
    if issubclass(kind, jax.Array):
        return "jax.Array"
    if kind.__module__ == "builtins":
        return kind.__qualname__
    root = kind.__module__.partition(".")[0]
    stood_for = jax_internals.stands_for(kind, value) if root == "jax" else None
    return stood_for or f"{root}.{kind.__qualname__}"


def leaf(path: str, value: Any, shardings: Shardings) -> Leaf:
    """Return ``value``, one leaf of a call's arguments, as data: type, shape, dtype, sharding and so on. A
    field is None if it cannot be read. Of a tracer, sharding, memory_kind, layout and committed are always
    None.

    Args:
      path: where the leaf is: ``state.params['w']``.
      value: the leaf.
      shardings: the table to which the sharding of the leaf is added.
    """
    import jax

    kind = type_name(value)
    aval = getattr(value, "aval", None)  # arrays, and the objects by which JAX replaces them in f.lower()
    if aval is None:
        try:
            aval = jax.typeof(value)
        except Exception:
            aval = value  # a ShapeDtypeStruct, or another object with a shape and a dtype
    shape = getattr(aval, "shape", None)
    sharding = committed = layout = None
    if kind != "Tracer":
        sharding = getattr(value, "sharding", None)
        committed = jax_internals.committed(value)
        form = getattr(value, "format", None)
        layout = getattr(getattr(form, "layout", None), "major_to_minor", None)
    dtype, weak = getattr(aval, "dtype", None), getattr(aval, "weak_type", None)
    return Leaf(
        path=path,
        type=kind,
        shape=dimensions(shape),
        dtype=None if dtype is None else dtype_name(dtype),
        weak_type=weak if isinstance(weak, bool) else None,
        sharding=shardings.index(sharding),
        committed=committed,
        memory_kind=getattr(sharding, "memory_kind", None),
        layout=None if layout is None else str(tuple(layout)),
    )


@functools.lru_cache(256)
def dtype_name(dtype: Any) -> str:
    """Return ``str(dtype)``, from a cache."""
    return str(dtype)  # takes NumPy 5 us, and a model has hundreds of leaves with equal dtypes


def dimensions(shape: Any) -> tuple[int | str, ...] | None:
    """Return ``shape`` with integers for known dimensions and text for symbolic ones: ``(8, 'batch')``.
    Return None if ``shape`` is None."""
    return (
        None
        if shape is None
        else tuple(int(d) if isinstance(d, (int, np.integer)) else str(d) for d in shape)
    )


def parameter_names(signature: inspect.Signature | None, count: int) -> list[str]:
    """Return names for the first ``count`` positional arguments of a function: ``["x", "args[0]"]`` for ``def
    f(x, *args)``. If ``signature`` is None, all are named ``args[0]``, ``args[1]``, ..."""
    names: list[str] = []
    variadic = "args"
    for p in signature.parameters.values() if signature is not None else ():
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            names.append(p.name)
        elif p.kind == p.VAR_POSITIONAL:
            variadic = p.name
    fixed = len(names)
    return [*names, *(f"{variadic}[{i}]" for i in range(max(0, count - fixed)))][:count]


def keyword_name(signature: inspect.Signature | None, name: str) -> str:
    """Return the path of the keyword argument ``name`` of a function: ``kwargs['lr']`` if the function takes
    ``lr`` by its ``**kwargs``, else ``lr``. If ``signature`` is None (unknown), return ``name``."""
    for p in signature.parameters.values() if signature is not None else ():
        if p.name == name and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
            return name
    for p in signature.parameters.values() if signature is not None else ():
        if p.kind == p.VAR_KEYWORD:
            return f"{p.name}[{name!r}]"
    return name


def call_form(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return how the arguments ``args`` and ``kwargs`` of a call were passed: ``2 positional, keywords:
    mask``."""
    form = f"{len(args)} positional"
    return f"{form}, keywords: {', '.join(sorted(kwargs))}" if kwargs else form


def is_array(value: Any) -> bool:
    """Return whether ``value`` is a NumPy array or scalar, an array of JAX (``paths.is_jax_array``), or a
    ``jax.ShapeDtypeStruct``."""
    import jax

    # Not isinstance: it reads __class__, by which a lazy object loads itself.
    of_type = issubclass(type(value), (np.ndarray, np.generic, jax.ShapeDtypeStruct))
    return of_type or paths.is_jax_array(value)


def options(info: JitInfo) -> dict[str, str] | None:
    """Return the options in ``info`` that differ from jit's defaults, as text: ``{"donate_argnums":
    "(0,)"}``. Return None if one of jit's options cannot be read."""
    given = {name: getattr(info, name) for name in JitInfo.names}
    if not all(map(known, given.values())):
        return None
    found: dict[str, str] = {}
    for name in (
        "static_argnums",
        "static_argnames",
        "donate_argnums",
        "donate_argnames",
        "compiler_options_kvs",
    ):
        if given[name]:
            found[name.removesuffix("_kvs")] = limited(str(given[name]))
    for name in ("device", "backend"):
        if given[name] is not None:
            found[name] = str(given[name])
    for name in ("keep_unused", "use_resource_env"):
        if given[name]:
            found[name] = "True"
    inline = str(given["inline"])
    if inline not in ("False", "Inline.AUTO"):
        found["inline"] = inline
    for name in ("in_shardings", "out_shardings", "in_layouts", "out_layouts"):
        leaves = given[f"{name}_leaves"]
        if any(v is not None and "Unspecified" not in type(v).__name__ for v in leaves):
            texts = [_option_sharding(v) for v in leaves]
            found[name] = limited(", ".join(texts))
    return found


def _option_sharding(value: Any) -> str:
    """Return ``value``, one element of jit's in_shardings, out_shardings, in_layouts or out_layouts, as text:
    ``P('d',) on d=1 devices 0 device``, where ``device`` is the memory kind. Return ``unspecified`` if the
    element is None or JAX's ``UNSPECIFIED``."""
    if value is None or "Unspecified" in type(value).__name__:
        return "unspecified"
    if hasattr(type(value), "device_set"):  # the value's own device_set may raise, on an AbstractMesh
        fact = read_sharding(value)
        return f"{fact.text} devices {fact.devices}" + (f" {fact.memory_kind}" if fact.memory_kind else "")
    return ADDRESS.sub("", str(value))


def statics_of(info: JitInfo | JitOptions, args: tuple[Any, ...]) -> tuple[set[int], set[str]]:
    """Return which arguments of a call are static: ({positions in ``args``}, {all names in
    static_argnames}). ``info`` has the options of jit, ``args`` the positional arguments of the call.

    Raises:
      LookupError: the options cannot be read in the installed JAX.
    """
    if not known(info.static_argnums) or not known(info.static_argnames):
        raise LookupError("which arguments are static is not known")
    numbers = {n if n >= 0 else n + len(args) for n in info.static_argnums}
    return {n for n in numbers if n < len(args)}, set(info.static_argnames)


class Flat(NamedTuple):
    """The flattened dynamic (not static) arguments of a call.

    Attributes:
      names: the names of all positional arguments, static ones too.
      leaves: (path, value) of each leaf, in JAX's order.
      tree: the PyTreeDef of ((positional, ...), {keyword: ...}).
      roots: (name, value) of each dynamic argument as it was passed, in the order of ``tree``.
      keys: JAX's key path of each leaf. Its first two entries lead to the argument, the others to the leaf in
        it.
    """

    names: list[str]
    leaves: list[tuple[str, Any]]
    tree: Any
    roots: list[tuple[str, Any]]
    keys: list[tuple[Any, ...]]


def flatten(info: JitInfo | JitOptions, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Flat:
    """Flatten the dynamic (not static) arguments of ``jit(f)(*args, **kwargs)`` as JAX does. This calls the
    flatten functions of the program's pytree classes. ``info`` has the options of jit, which determine the
    static arguments. Raises LookupError if these options cannot be read."""
    import jax

    signature = known_or_none(info.fun_signature)
    static_nums, static_names = statics_of(info, args)
    names = parameter_names(signature, len(args))
    dynamic = [i for i in range(len(args)) if i not in static_nums]
    keywords = {k: v for k, v in kwargs.items() if k not in static_names}
    found, tree = jax.tree_util.tree_flatten_with_path((tuple(args[i] for i in dynamic), keywords))
    flat = []
    for (group, first, *rest), value in found:
        top = names[dynamic[first.idx]] if group.idx == 0 else keyword_name(signature, first.key)
        holder = args[dynamic[first.idx]] if group.idx == 0 else kwargs[first.key]
        flat.append((top + key_path(holder, tuple(rest), value), value))
    roots = [(names[i], args[i]) for i in dynamic]
    roots += [(keyword_name(signature, k), keywords[k]) for k in sorted(keywords)]
    return Flat(names, flat, tree, roots, [p for p, _ in found])


def _nodes(call: Flat, serials: Serials) -> Nodes:
    """Return the containers (dicts, lists, custom pytree nodes) in the arguments of ``call``, and the static
    data of the custom nodes. ``serials`` gives numbers to objects that JAX compares by identity."""
    nodes = Nodes(serials)
    start = 0
    tops = [t for group in call.tree.children() for t in group.children()]
    for (name, value), top in zip(call.roots, tops, strict=True):
        end = start + top.num_leaves
        below = zip(call.keys[start:end], call.leaves[start:end], strict=True)
        nodes.read(name, top, value, [(keys, held) for keys, (_, held) in below], 2)
        start = end
    return nodes


def of_call(
    function: Any,
    info: JitInfo | JitOptions,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    user: UserCall | None,
    serials: Serials,
    context: str | None,
) -> Read:
    """Return the cache key of the call ``jit(function)(*args, **kwargs)``, and references to the arrays in
    it.

    Args:
      info: the options of jit.
      user: the user's call of a library's wrapper such as ``nnx.jit``, if this wrapper called
        ``jit(function)``; None: no wrapper did. The key names the arguments by their paths in the user's
        call.
      serials: gives numbers to objects that JAX compares by identity.
      context: the id in the log of JAX's configuration at this call; None: unknown.

    Raises:
      LookupError: which arguments are static cannot be read in the installed JAX.
    """
    given: dict[str, str] | None = {}
    if isinstance(info, JitInfo) and (user is None or not user.options_are_its_own):
        given = options(info)
    if user is not None and user.flattened is not None:
        info, args, kwargs, user = user.flattened, user.args, user.kwargs, None
    call = flatten(info, args, kwargs)
    # A library's wrapper passes on static arguments of the user, which ``_behind_wrapper`` finds.
    statics = _static_arguments(call.names, info, args, kwargs, serials) if user is None else []
    statics += entries("partial", function, serials)[1:]  # the values that a partial binds
    users_names: dict[paths.Identity, list[str]] = {}
    if user is not None:
        found, passed_on = _behind_wrapper(call, user, info, args, kwargs, serials)
        users_names, kinds = found.arrays, found.containers
        statics += passed_on
    else:
        nodes = shield.attempt("tree_nodes", _nodes, call, serials)
        kinds = nodes.kinds if nodes is not None else {}
        statics += nodes.static if nodes is not None else []
    shardings = Shardings()
    leaves, refs, narrowed = _leaves(call, users_names, shardings)
    return Read(
        Key(
            arguments=leaves,
            static=statics,
            tree=_tree_text(call.tree),
            nodes=kinds,
            call_form=call_form(args, kwargs) if user is None else call_form(user.args, user.kwargs),
            options=given or {},
            missing=[] if given is not None else ["options"],
            context=context,
            shardings=shardings.table,
            function_object=serials.number(function),
        ),
        refs,
        narrowed,
    )


def _static_arguments(
    names: list[str],
    info: JitInfo | JitOptions,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    serials: Serials,
) -> list[Static]:
    """Return the log's entries for the static arguments of a call: first the positional ones, then the
    keyword arguments. One argument may have several entries (``statics.entries``).

    Args:
      names: the names of all positional arguments.
      info: the options of jit, which determine the static arguments among ``args`` and ``kwargs``.
      serials: gives numbers to objects that JAX compares by identity.
    """
    numbers, keywords = statics_of(info, args)
    found = [s for i in sorted(numbers) for s in entries(names[i], args[i], serials)]
    return found + [s for k, v in kwargs.items() if k in keywords for s in entries(k, v, serials)]


def _leaves(
    call: Flat, users_names: dict[paths.Identity, list[str]], shardings: Shardings
) -> tuple[list[Leaf], list[tuple[int, weakref.ref[Any]]], list[tuple[int, np.ndarray[Any, Any]]]]:
    """Return (the leaves of a call's arguments as data, ``Read.refs``, ``Read.narrowed``).

    Args:
      call: the flattened arguments of the call.
      users_names: ``paths.identity`` of an array -> the array's paths in the user's own call, if a library's
        wrapper made ``call``. Each path that is used is removed from its list. All other leaves keep JAX's
        paths.
      shardings: the table to which the shardings of the leaves are added.
    """
    leaves: list[Leaf] = []
    refs: list[tuple[int, weakref.ref[Any]]] = []
    narrowed: list[tuple[int, np.ndarray[Any, Any]]] = []
    for position, (path, value) in enumerate(call.leaves):
        named = users_names.get(paths.identity(value))
        # An array that is passed twice has two names. Each name is used once.
        leaves.append(leaf(named.pop(0) if named else path, value, shardings))
        if _is_concrete(value):
            refs.append((position, weakref.ref(value)))
        elif type(value) is np.ndarray and rounding.SMALLER.get(value.dtype.name) == leaves[-1].dtype:
            narrowed.append((position, value))
    return leaves, refs, narrowed


def _tree_text(tree: Any) -> str | None:
    """Return ``tree``, a PyTreeDef, as text of limited length; None if a repr in it raises an exception."""
    try:
        return limited(ADDRESS.sub("", str(tree)))
    except Exception:  # the repr of a class's aux data
        return None


def _behind_wrapper(
    call: Flat,
    user: UserCall,
    info: JitInfo | JitOptions,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    serials: Serials,
) -> tuple[paths.Found, list[Static]]:
    """Find the user's arguments in a call of jit that a library's wrapper such as ``nnx.jit`` made. Return
    (what the user's arguments contain, by path; the log's entries for the static values in the user's
    arguments and for the wrapper's own positional static arguments).

    Args:
      call: the flattened arguments that the wrapper passes to jit.
      user: the user's call of the wrapper.
      info: the options of jit, which determine the static arguments among ``args`` and ``kwargs``.
      args, kwargs: the arguments that the wrapper passes to jit.
      serials: gives numbers to objects that JAX compares by identity.
    """
    numbers, keywords = statics_of(info, args)
    static = [args[i] for i in numbers] + [v for k, v in kwargs.items() if k in keywords]
    compared = Compared(call.tree, static)
    found = _users_names(user, compared)
    traced = {path for path, _ in call.leaves}
    # The walk finds the shortest paths first. So if there are too many values, those deep in a model are left
    # out.
    passed_on = [(path, v) for path, v in found.others if path not in traced and v in compared][:MAX_STATICS]
    passed_on.sort(key=itemgetter(0))
    own = [opaque(f"<{user.wrapper}>.{call.names[i]}", args[i]) for i in sorted(numbers)]
    return found, [s for path, value in passed_on for s in entries(path, value, serials)] + own


def _users_names(user: UserCall, compared: Compared) -> paths.Found:
    """Return the paths of the arrays and other values in the arguments of ``user``, the user's call of a
    library's wrapper. Values that JAX compares as one object (``compared.without_contents``) are not
    searched."""
    roots = list(zip(parameter_names(user.signature, len(user.args)), user.args, strict=True))
    roots += [(keyword_name(user.signature, k), v) for k, v in user.kwargs.items()]
    return paths.walk(roots, is_array, whole=compared.without_contents)


def _is_concrete(value: Any) -> bool:
    """Return whether ``value`` is a jax.Array and no tracer."""
    import jax

    return issubclass(type(value), jax.Array)


def of_flat(
    values: list[Any], names: list[str] | tuple[str, ...] | None, context: str | None, serial: int | None
) -> Read:
    """Return the cache key of a call of which only the flat arguments are known, and weak references to its
    arrays. The parts of the key that are unknown, such as ``static``, are named in ``Key.missing``.

    Args:
      values: the flat arguments.
      names: their paths; None: unknown.
      context: the id in the log of JAX's configuration at this call; None: unknown.
      serial: the number of the function object (``Serials``); None: unknown.
    """
    shardings = Shardings()
    known = list(names or ())
    leaves = [
        leaf((known[i] if i < len(known) else "") or f"args[{i}]", v, shardings) for i, v in enumerate(values)
    ]
    refs = [(i, weakref.ref(v)) for i, v in enumerate(values) if _is_concrete(v)]
    return Read(
        Key(
            arguments=leaves,
            context=context,
            shardings=shardings.table,
            function_object=serial,
            missing=["static", "tree", "options"] + (["function_object"] if serial is None else []),
        ),
        refs,
        [],
    )


def of_source(
    source: dict[str, Any], user: UserCall | None, serials: Serials, context: str | None
) -> Read | None:
    """Return the cache key of the call in progress, and references to its arrays; None if JAX's frames do not
    show the arguments.

    Args:
      source: what JAX's frames show of the call: function, options of jit, arguments
        (``jax_internals.source``).
      user: the user's call of a library's wrapper such as ``nnx.jit``, if this wrapper made the call in
        progress; None: no wrapper did.
      serials: gives numbers to objects that JAX compares by identity.
      context: the id in the log of JAX's configuration at this call; None: unknown.

    Raises:
      LookupError: which arguments are static cannot be read in the installed JAX.
    """
    if "args" in source:
        return of_call(
            source["fun"],
            source["jit_info"],
            tuple(source["args"]),
            dict(source["kwargs"]),
            user,
            serials,
            context,
        )
    if "flat" not in source:
        return None
    values = list(source["flat"])
    names = known_or_none(jax_internals.debug_info(source.get("jaxpr")).arg_names)
    around = source.get("around")
    serial = None
    if around is not None:
        serial = serials.number(around["fun"])
        named = flatten(around["jit_info"], tuple(around["args"]), dict(around["kwargs"])).leaves
        names = tuple(path for path, _ in named) if len(named) == len(values) else names
    return of_flat(values, names, context, serial)
