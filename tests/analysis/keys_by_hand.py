"""Cache keys written by hand, for tests of what is made of them."""

from hypothesis import strategies as st

from jaxscope.schema.keys import Key, Leaf, Sharding, Static

CPU0 = Sharding("SingleDeviceSharding", "cpu:0", "0", None, None, "device")
CPU1 = Sharding("SingleDeviceSharding", "cpu:1", "1", None, None, "device")
MESH = (("d", 4, "Auto"),)


def on_mesh(spec: str, mesh=MESH, devices: str = "0-3", memory_kind: str = "device") -> Sharding:
    """A NamedSharding."""
    axes = ",".join(f"{n}={s}" for n, s, _ in mesh)
    return Sharding("NamedSharding", f"{spec} on {axes}", devices, mesh, spec, memory_kind)


SPLIT, WHOLE = on_mesh("P('d',)"), on_mesh("P()")
RESPELLED = on_mesh("P('d', None)")
REVERSED = on_mesh("P('d',)", devices="3,2,1,0")
OTHER_MESH = on_mesh("P('z',)", (("z", 4, "Auto"),))
EXPLICIT = (("d", 4, "Explicit"),)
SHARDINGS = [CPU0, CPU1, SPLIT, WHOLE, RESPELLED, REVERSED, OTHER_MESH, on_mesh("P('d',)", EXPLICIT), on_mesh("P()", EXPLICIT)]  # fmt: skip


def array(path: str, shape=(4,), dtype="float32", sharding: Sharding = CPU0, **more) -> Leaf:
    """A committed jax.Array."""
    given = {
        "weak_type": False,
        "committed": True,
        "memory_kind": "device",
        "layout": str(tuple(range(len(shape)))),
    }
    at = SHARDINGS.index(sharding)
    return Leaf(path=path, type="jax.Array", shape=shape, dtype=dtype, sharding=at, **{**given, **more})


def scalar(path: str, kind: str = "float", dtype: str = "float32") -> Leaf:
    """A Python number."""
    return Leaf(path=path, type=kind, shape=(), dtype=dtype, weak_type=kind != "bool")


def numpy(path: str, shape=(4,), dtype="float32") -> Leaf:
    return Leaf(path=path, type="numpy.ndarray", shape=shape, dtype=dtype, weak_type=False)


def key(*arguments: Leaf, **more) -> Key:
    return Key(arguments=list(arguments), **{"shardings": SHARDINGS, "function_object": 1, **more})


leaves = st.builds(
    Leaf,
    path=st.sampled_from(["x", "y['a']", "y['b']", "y['c'][0]", "", "[", "y]["]),
    type=st.sampled_from(["jax.Array", "float", "numpy.ndarray", "jax.ShapeDtypeStruct", "Tracer"]),
    shape=st.none() | st.lists(st.integers(0, 3) | st.just("n"), max_size=3).map(tuple),
    dtype=st.none() | st.sampled_from(["float32", "key<fry>", "int32"]),
    weak_type=st.none() | st.booleans(),
    sharding=st.none() | st.integers(-1, len(SHARDINGS)),
    committed=st.none() | st.booleans(),
    memory_kind=st.none() | st.sampled_from(["device", "pinned_host"]),
    layout=st.none() | st.just("(0,)"),
)
statics = st.builds(
    Static,
    path=st.sampled_from(["a", "b", "y['a'].rate", "<equinox.filter_jit>.static", "partial.args[0]"]),
    repr=st.sampled_from(["1", "2", "(see the fields above)", "<f at 0x1>"]),
    type=st.sampled_from(["int", "function"]),
    compares=st.none() | st.sampled_from(["value", "identity"]),
    serial=st.none() | st.integers(1, 2),
    hash=st.none() | st.integers(1, 2),
    unstable_hash=st.booleans(),
)
any_key = st.builds(
    Key,
    arguments=st.lists(leaves, max_size=5),
    static=st.lists(statics, max_size=3),
    tree=st.none() | st.sampled_from("AB"),
    nodes=st.dictionaries(st.sampled_from(["x", "y", "y['a']", "y['c']"]), st.sampled_from(["dict", "list", "None"]), max_size=3),
    options=st.dictionaries(st.sampled_from(["donate_argnums", "b"]), st.sampled_from("12"), max_size=2),
    call_form=st.none() | st.sampled_from(["1 positional", "0 positional, keywords: x", "2 positional"]),
    context=st.none() | st.sampled_from(["c1", "c2"]),
    shardings=st.just(SHARDINGS),
    function_object=st.none() | st.integers(1, 2),
    missing=st.lists(st.sampled_from(["tree", "options", "static"]), max_size=1),
)  # fmt: skip
