"""Record small programs as they are, then once for each private name of JAX, renamed.

A name is renamed in jaxscope's declaration of it: to jaxscope, JAX has none of that name. With the argument ``code``,
local variables are renamed in the code of JAX's own functions instead. Each recording runs the programs that read the
name. Writes a JSON line for each: {"renamed", "programs": {name: {"output", "calls", "counts"}}, "degraded"}.
"""

import contextlib
import functools
import json
import sys
import tempfile
from pathlib import Path

import jax
import msgspec
import numpy as np

from jaxscope.capture import session
from jaxscope.jax_internals import attributes, base, frames, objects
from jaxscope.log import reader, store
from jaxscope.schema import events as ev
from jaxscope.schema.targets import Target

TARGET = Target(name="v5e:1x1", machine="v5e", platform="tpu", grid=(1, 1), slices=1, devices=1)
NAMES = {
    "session": session,
    "TARGET": TARGET,
    "jax": jax,
    "np": np,
    "partial": functools.partial,
    "TABLE": np.ones((300,), "f4"),
    "BOTH": jax.sharding.NamedSharding(jax.make_mesh((2,), ("d",)), jax.sharding.PartitionSpec("d")),
}
PROGRAMS = {
    "sharded": """
@partial(jax.jit, static_argnums=1, donate_argnums=0, out_shardings=BOTH)
def step(x, n, unused): return x * n + TABLE[:4]
x = jax.device_put(np.ones(4, "f4"), BOTH)
out.append([float(v) for v in jax.device_get(step(x, 2, 1.0))])
out.append(x.is_deleted())
""",
    "nested": """
inner = jax.jit(lambda v: v * 2)
def bad(x):
    inner(x)
    raise ValueError("of the program")
def careful(x):
    try: jax.jit(bad)(x)
    except ValueError: return inner(x)
jax.jit(careful)(np.ones(3, "f4"))
try: jax.jit(bad)(1.0)
except ValueError as e: out.append(str(e))
""",
    "ahead": """
jax.jit(lambda v: v * 3, in_shardings=ONE).lower(jax.ShapeDtypeStruct((2,), "f4")).compile()
""",
    "transform": """
inner = jax.jit(lambda v: v * v)
out.append(float(jax.grad(lambda v: inner(v))(2.0)))
""",
    "repeated": """
@jax.jit
def printing(x):
    jax.debug.callback(lambda v: None, x)
    return x
for _ in range(6): printing(TABLE)
jax.effects_barrier()
""",
    "pmapped": """
def mapped(v): return v + 1
out.append(np.asarray(jax.pmap(mapped)(np.ones((2, 3), "f4"))).tolist())
""",
    "rounded": """
out.append(float(jax.numpy.asarray(1.7e9 + np.arange(200.0))[0]))
""",
    "asked": """
session.current().compile_for(TARGET, jax.jit(lambda v: v - 1).trace(np.ones(3, "f4")))
""",
    "moved": """
both = jax.sharding.NamedSharding(BOTH.mesh, jax.sharding.PartitionSpec())
jax.jit(lambda v: v, device=jax.devices()[1])(jax.device_put(np.ones(2, "f4"), jax.devices()[0]))
""",
}
NAMES["ONE"] = jax.sharding.SingleDeviceSharding(jax.devices()[0])
CODE = {name: compile(text, f"{name}.py", "exec") for name, text in PROGRAMS.items()}
# Empty where they are not known, too: whoever reads them compares their length with that of what they describe.
EMPTY = (
    "in_shardings",
    "in_sharding_of",
    "out_shardings",
    "out_sharding_of",
    "platforms",
    "cost",
    "made",
    "made_by",
)
# Of a moment, of this file's own lines, or names for what is compared by itself.
VARIES = frozenset(
    ("t_ns", "pid", "tid", "seq", "thread", "seconds", "program", "of", "stack", "stablehlo", "stablehlo_bytes")
) | {"process_index", "step", "main_step", "full", "column", "first_ns", "last_ns"}  # fmt: skip
OF_CALL = ("Missed", "TraceReused", "Traced", "Lowered", "Compiled", "PhaseFailed", "Retargeted")


def recorded(renamed: str, programs: list[str], where: Path) -> dict:
    run = store.create(where, how="record", argv=[])
    session.start(run, how="record", options=session.Options(targets=[TARGET], arrays=False))
    output = {}
    for name in programs:
        out = output[name] = []
        try:
            exec(CODE[name], {**NAMES, "out": out})
        except Exception as e:
            out.append(f"{type(e).__name__}: {e}")
    session.stop()
    events = list(reader.read(run))
    degraded = [[e.seam, e.reason] for e in events if isinstance(e, ev.Degraded)]
    return {"renamed": renamed, "output": output, **facts(events), "degraded": degraded}


def facts(events: list) -> dict:
    """What the log says, without what varies between two recordings; what is not known is None."""
    calls: dict[int, dict] = {}
    functions = {e.function: e for e in events if isinstance(e, ev.FunctionSeen)}
    contexts = {e.context: e.settings for e in events if isinstance(e, ev.ContextSeen)}
    counts: dict[str, object] = {}
    for e in events:
        kind = type(e).__name__
        if isinstance(e, ev.Transferred):
            counts[f"{e.direction} {e.via} {place(e.site)}"] = [e.count, e.bytes]
        elif isinstance(e, ev.Rounded):
            counts[f"rounded {place(e.site)}"] = round(e.share, 3)
        elif isinstance(e, ev.MissesCounted):
            counts[f"misses of {e.function.partition('@')[0]}"] = True
        elif isinstance(e, ev.MemoryRead):  # of a compilation that took long: of any, on a busy machine
            compiled = [data for name, data in calls[e.call]["events"] if name == "Compiled"]
            compiled[-1]["memory"] = msgspec.to_builtins(e.memory)
        if kind not in OF_CALL:
            continue
        data = {f: getattr(e, f) for f in e.__struct_fields__ if f not in VARIES}
        if isinstance(e, ev.Missed):
            seen = functions.get(e.function)
            # The name of a function that is not known.
            known = seen is not None and not seen.name.startswith(("<unknown>", "?"))
            data["function"] = f"{seen.name} line {seen.line} library {seen.library}" if known else None
            data["key"] = key(e.key, contexts)
            data["inside"] = calls[e.inside]["site"] if e.inside in calls else None
            data["cleared"] = None if e.cleared is None else 0
            calls[e.call] = {"site": place(e.site), "events": []}
        elif data.get("skipped"):
            data = {"skipped": data["skipped"]}
        data.pop("call", None)
        data = {f: None if f in EMPTY and not v else v for f, v in data.items()}
        calls[e.call]["events"].append([kind, msgspec.to_builtins(data, str_keys=True)])
    return {"calls": list(calls.values()), "counts": counts}


def place(site) -> str | None:
    return f"{site.file}:{site.line}" if site is not None else None


def key(found, contexts: dict) -> dict | None:
    """Each part of a key by itself; None for one that was not recorded."""
    if found is None:
        return None
    data = {f: getattr(found, f) for f in found.__struct_fields__ if f not in ("missing", "function_object")}
    data["context"] = contexts.get(found.context)
    return {part: None if part in found.missing else value for part, value in data.items()}


class Reads:
    """Which declarations each program reads: (holder, entry, JAX's name) by the program's name."""

    def __init__(self) -> None:
        self.of: dict[str, set[str]] = {}

    @contextlib.contextmanager
    def noted(self, program: str):
        """Note what is read meanwhile."""
        found = self.of.setdefault(program, set())

        def noting(real, name):
            def read(*args, **kwargs):
                found.add(name(args[0]))
                return real(*args, **kwargs)

            return read

        news = [(kind, kind.__new__) for kind in (base.JaxFrame, base.JaxObject)]
        get = base.Private.get
        for kind, real in news:
            kind.__new__ = staticmethod(noting(real, lambda cls: cls.where()))
        base.Private.get = noting(get, lambda a: f"{a.module}.{a.name}")
        try:
            yield
        finally:
            for kind, real in news:
                kind.__new__ = staticmethod(real)
            base.Private.get = get


def declarations() -> list[tuple[str, str, object, str]]:
    """(what reads it, JAX's name, the dictionary or object that declares it, its entry there)."""
    found = []
    for kind in (*frames.FRAMES, *objects.OBJECTS):
        found += [(kind.where(), name, kind.names, field) for field, name in kind.names.items()]
    for a in attributes.ATTRIBUTES.values():
        found.append((f"{a.module}.{a.name}", a.name, a, "name"))
    return found


def renamed_in_declarations(where: Path, programs_of: dict[str, list[str]]) -> None:
    for n, (owner, name, holder, entry) in enumerate(declarations()):
        change = functools.partial(dict.__setitem__ if isinstance(holder, dict) else setattr, holder, entry)
        change(f"{name}_renamed")
        try:
            found = recorded(f"{owner} {name}", programs_of.get(owner, []), where / str(n))
        finally:
            change(name)
        print(json.dumps(found))


def renamed_in_code(where: Path, programs_of: dict[str, list[str]]) -> None:
    """Rename local variables in the code of JAX's functions; not parameters: they may be passed by name."""
    for kind in frames.FRAMES:
        function = kind.python_function()
        for name in kind.names.values() if function is not None else ():
            code = function.__code__
            if name not in code.co_varnames[code.co_argcount + code.co_kwonlyargcount :]:
                continue
            other = tuple(f"{v}_renamed" if v == name else v for v in code.co_varnames)
            function.__code__ = code.replace(co_varnames=other)
            try:
                found = recorded(
                    f"{kind.where()} {name}",
                    programs_of.get(kind.where(), []),
                    where / f"{kind.function} {name}",
                )
            finally:
                function.__code__ = code
            print(json.dumps(found))


def main(where: Path) -> None:
    reads = Reads()
    for n, program in enumerate(PROGRAMS):
        with reads.noted(program):
            recorded(
                program, [program], where / f"reads {n}"
            )  # what is compiled once in a process is compiled now
        print(json.dumps(recorded(program, [program], where / f"as it is {n}")))
    owners = {owner for owner, *_ in declarations()}
    several = {kind.where() for kind in frames.FRAMES}
    programs_of = {
        owner: [p for p in PROGRAMS if owner in reads.of[p]][: 3 if owner in several else 1]
        for owner in owners
    }
    programs_of[frames.TransformFrame.where()] = ["transform"]  # only its identity is read
    (renamed_in_code if "code" in sys.argv else renamed_in_declarations)(where, programs_of)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
