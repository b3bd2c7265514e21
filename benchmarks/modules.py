"""Compare what jaxscope reads from compiled texts with XLA's binary form and the compiler's memory figures.

    python benchmarks/modules.py [-o FILE] [--targets cpu,v5e:2x4,h100:8] [--keep FOLDER] [NAME...]

Compiles the programs of tests/programs/many_modules.py for eight forced CPU devices and, where its compiler
is installed, for each other target, in processes of their own. The truth comes from ``modules_binary.py`` and
``modules_runs.py``, which share no code with jaxscope. Each line is one module. Below it stand

- ``differs``: two figures that are not equal;
- ``unknown``: a figure that jaxscope leaves open (None) and the binary form has;
- ``not compared``: what has no truth, with the reason.

The exit code is 1 if figures differ. Bytes are those of one device.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise, product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]
from modules_binary import (  # noqa: E402
    ALIAS_KINDS,
    Computation,
    Group,
    Instruction,
    Module,
    positions,
    shape_bytes,
)
from modules_runs import Runs  # noqa: E402

from jaxscope.analysis.hlo import program as texts  # noqa: E402

PROGRAMS = ROOT / "tests" / "programs" / "many_modules.py"
TARGETS = ("cpu", "v5e:2x4", "v5p:2x2x2", "v6e:2x4", "tpu7x:2x2x1", "2*v5e:2x2", "h100:8")
KINDS = (
    *("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute"),
    *("collective-broadcast", "ragged-all-to-all", "send", "recv"),
)
STARTS = {opcode: kind for kind in KINDS for opcode in (kind, f"{kind}-start")}
PASSES = ("bitcast", "copy", "reshape", "convert", "transpose", "get-tuple-element")
COLLECTIVE = (
    *("kind", "bytes", "operand bytes", "executions"),
    *("groups", "size", "devices", "axes around", "async", "branches"),
)
FUSION = ("kind", "bytes in", "bytes out", "operations", "executions")
NO_AXES = "not along axes"
SHARED = "(several callers)"
LOOP = ("name", "trip count", "executions")
# OpSharding.Type -> the word that XLA prints.
OTHER = 3
SHARDINGS = {0: "replicated", 1: "maximal", 2: "tuple", 4: "manual"}
MESSAGE = 300
NEVER = "not compared: bytes of temporaries: no text states them"
TABLE = (
    "bytes of results: the table of their addresses, of 4 bytes each, is rounded up to 32 bytes on v5p, v6e and"
    " tpu7x and to 512 on v5e, which jaxscope assumes, as no text says so"
)
Mesh = Sequence[tuple[str, int]]
Row = tuple[Any, ...]
Rows = tuple[tuple[str, ...], list[Row]]


@dataclass
class Compared:
    """One module: how many things of each kind were compared, and what was found."""

    counts: dict[str, int] = field(default_factory=dict)
    differs: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)


def devices_along(axes: Iterable[str], mesh: Mesh) -> frozenset[frozenset[int]]:
    """Return the groups of positions along mesh axes, or parts of axes, as jaxscope writes them: ``data``,
    ``data:(2)4``, which is a part of 4 after the factors whose product is 2."""
    used: dict[str, list[tuple[int, int]]] = {}
    for axis in axes:
        name, _, part = axis.partition(":")
        before, _, size = part.strip("(").partition(")")
        used.setdefault(name, []).append((int(before or 1), int(size) if size else 0))
    groups: dict[Row, set[int]] = {}
    for position, place in enumerate(product(*(range(size) for _, size in mesh))):
        outside = list(place)
        for number, (name, whole) in enumerate(mesh):
            for before, size in used.get(name, ()):
                behind = whole // (before * (size or whole))
                outside[number] -= place[number] // behind % (size or whole) * behind
        groups.setdefault(tuple(outside), set()).add(position)
    return frozenset(frozenset(group) for group in groups.values())


def along_axes(members: frozenset[frozenset[int]], mesh: Mesh) -> bool:
    """Return whether groups run along axes, or parts of axes, of a mesh: they are tried one after the other.
    The sizes of the axes are powers of two."""
    parts = [f"{name}:({2**n})2" for name, size in mesh for n in range(size.bit_length() - 1)]
    tried = product((False, True), repeat=len(parts))
    chosen = ([p for p, use in zip(parts, uses, strict=True) if use] for uses in tried)
    return any(devices_along(axes, mesh) == members for axes in chosen)


def changed_axes(pairs: Iterable[Group], mesh: Mesh) -> list[str]:
    """Return the axes on which the source and the target of some pair differ."""
    places = list(product(*(range(size) for _, size in mesh)))
    return [name for n, (name, _) in enumerate(mesh) if any(places[a][n] != places[b][n] for a, b in pairs)]


def true_devices(collective: Instruction, mesh: Mesh) -> Row:
    """Return (number of groups, members of a group, what the groups are, axes) of a collective. What they are
    is the axes of a permute, the sets of positions, or NO_AXES. Only then there are axes: those along which
    members of a group differ."""
    members = positions(collective)
    if members is None:
        return None, None, "not compared", None
    if collective.opcode.startswith("collective-permute"):
        return None, None, " ".join(changed_axes(members, mesh)) if mesh else "no mesh", None
    sizes = {len(m) for m in members}
    size = sizes.pop() if len(sizes) == 1 else None
    # A module for several slices has the devices of one slice; the others do the same.
    here = collective.computation.module.partitions * collective.computation.module.replicas
    slices = max(1, math.prod(size for _, size in mesh) // here)
    sets = frozenset(frozenset(n * here + i for i in m) for m in members for n in range(slices))
    if not mesh:
        return len(members), size, "no mesh", None
    if along_axes(sets, mesh):
        return len(members), size, spelled(sets), None
    pairs = [(m[0], other) for m in members for other in m]
    return len(members), size, NO_AXES, " ".join(changed_axes(pairs, mesh))


def said_devices(collective: Any, mesh: Mesh) -> Row:
    """Return what ``true_devices`` does, as jaxscope has read it from the text."""
    axes = collective.axes
    if collective.kind in ("send", "recv"):
        return None, None, "not compared", None
    if not mesh:
        return collective.groups, collective.group_size, "no mesh", None
    if collective.kind == "collective-permute":
        return None, None, "?" if axes is None else " ".join(axes), None
    if axes is not None:
        return collective.groups, collective.group_size, spelled(devices_along(axes, mesh)), None
    return collective.groups, collective.group_size, NO_AXES, " ".join(collective.axes_around or ["?"])


def spelled(groups: frozenset[frozenset[int]]) -> str:
    return " ".join("{" + ",".join(map(str, group)) + "}" for group in sorted(map(sorted, groups)))


def role_in_chain(collective: Instruction) -> str | None:
    """Return what the TPU fusion around a collective does in the chain of fusions that run it: ``start``,
    ``done``, or ``middle``. None: the collective is in no chain."""
    for user in collective.computation.users[collective]:
        target = user.raw["custom_call_target"]
        if target.startswith("AsyncCollective"):
            return {"Start": "start", "Done": "done"}.get(target[len("AsyncCollective") :], "middle")
    return "middle" if "async_collective_fusion_config" in collective.config else None


def scattered(reduced: Instruction) -> int | None:
    """Return the bytes that a fusion keeps of the result of an all-reduce, if it keeps only slices: then it
    is a reduce-scatter. Else return None."""
    kept, waiting, seen = 0, [reduced], set()
    while waiting:
        for user in reduced.computation.users[waiting.pop()]:
            if user.opcode == "dynamic-slice":
                kept += shape_bytes(user.shape)
            elif user.opcode not in PASSES:
                return None
            elif user not in seen:
                seen.add(user)
                waiting.append(user)
    return kept or None


def result_bytes(collective: Instruction) -> int:
    """Return the bytes of the result of a collective. Those of a pair are the result of its done, those of a
    send or recv the first member of its tuple."""
    if collective.opcode in ("send", "recv"):
        return shape_bytes(collective.shape["tuple_shapes"][0])
    if collective.opcode.endswith("-start"):
        done = f"{collective.opcode.removesuffix('-start')}-done"
        ends = [u for u in collective.computation.users[collective] if u.opcode == done]
        return shape_bytes(ends[0].shape)
    return shape_bytes(collective.shape)


def true_branches(computation: Computation) -> Row:
    """Return the branches of conditionals that contain a computation, from the outermost: ``conditional 0 of
    2``. At the end stands SHARED if not all callers are in the same branches."""
    paths: set[Row] = set()
    for call in computation.module.callers.get(computation, ()):
        around = true_branches(call.computation)
        if call.opcode == "conditional":
            places = [n for n, called in enumerate(call.called) if called is computation]
            paths |= {(*around, f"{call.name} {place} of {len(call.called)}") for place in places}
        else:
            paths.add(around)
    levels = list(zip(*paths, strict=False))
    same = [len(set(level)) == 1 for level in levels]
    common = tuple(level[0] for level in levels[: [*same, False].index(False)])
    return (*common, SHARED) if len(paths) > 1 else common


def said_branches(collective: Any) -> Row:
    """Return what ``true_branches`` does, as jaxscope has read it from the text."""
    names = [(b.conditional.rpartition("/")[2], b) for b in collective.branches]
    return tuple(f"{name} {b.number} of {b.of}" if name else SHARED for name, b in names)


def operations(body: Computation) -> int:
    """Return the number of operations of a fusion, with those in fusions inside."""
    inside = [called for i in body.instructions if i.opcode == "fusion" for called in i.called]
    own = sum(i.opcode not in ("parameter", "fusion") for i in body.instructions)
    return own + sum(map(operations, inside))


def true_collectives(module: Module, runs: Runs, mesh: Mesh) -> Rows:
    rows: list[Row] = []
    for collective in module.all(*STARTS):
        kind, computation = STARTS[collective.opcode], collective.computation
        between_slices = any("megascale" in key for key in collective.attributes)
        if kind in ("send", "recv") and collective.raw["is_host_transfer"] and not between_slices:
            continue  # an exchange with the host
        role = role_in_chain(collective) if computation in module.fused else None
        if role in ("middle", "done"):
            continue  # the chain was counted at its start
        size = result_bytes(collective)
        if kind == "all-reduce" and computation in module.fused:
            kept = scattered(collective)
            kind, size = ("reduce-scatter", kept) if kept is not None else (kind, size)
        paired = (
            role == "start"
            or collective.opcode.endswith("-start")
            or kind in ("send", "recv")
            or computation in module.asynchronous
        )
        operands = sum(shape_bytes(operand.shape) for operand in collective.operands)
        count = runs.executions.get(computation, 0)
        devices = true_devices(collective, mesh)
        rows.append((kind, size, operands, count, *devices, paired, true_branches(computation)))
    return COLLECTIVE, rows


def true_fusions(module: Module, runs: Runs) -> tuple[Rows, Rows]:
    """Return the fusions outside of others, and those inside by kind."""
    outer: list[Row] = []
    inner: list[Row] = []
    for fusion in module.all("fusion"):
        kind = fusion.raw["fusion_kind"].removeprefix("k").lower()
        if fusion.computation in module.fused:
            inner.append((kind,))
            continue
        body = fusion.called[0]
        given = sum(shape_bytes(i.shape) for i in body.instructions if i.opcode == "parameter")
        count = runs.executions.get(fusion.computation, 0)
        outer.append((kind, given, shape_bytes(fusion.shape), operations(body), count))
    return (FUSION, outer), (("kind",), inner)


def true_loops(module: Module, runs: Runs) -> Rows:
    rows: list[Row] = []
    for loop in module.all("while"):
        seen = runs.trips.get(loop, set())
        trips = next(iter(seen)) if len(seen) == 1 else None
        rows.append((loop.name, trips, runs.executions.get(loop.computation, 0)))
    return LOOP, rows


def true_sharding(sharding: dict[str, Any] | None) -> str:
    """Return the beginning of the text that XLA prints for the sharding of an argument."""
    if sharding is None:
        return "none"
    if sharding["named_sharding"]:
        return "mesh"
    if sharding["type"] == OTHER:
        return f"devices=[{','.join(map(str, sharding['tile_assignment_dimensions']))}]"
    return SHARDINGS.get(sharding["type"], "unknown")


def said_sharding(text: str | None) -> str:
    """Return the same beginning of the sharding that jaxscope has read."""
    if text is None:
        return "none"
    found = re.match(r"\{(devices=\[[\d,]*\]|[a-z]+)", text)
    return found[1] if found else text


def truth(module: Module, facts: dict[str, Any]) -> dict[str, Rows | object]:
    """Return each figure that jaxscope states, from the binary form and the compiler's memory figures."""
    runs, mesh = Runs(module), facts["mesh"] or []
    fusions, nested = true_fusions(module, runs)
    printed = module.printed()
    aliases = module.raw["input_output_alias"] or {"entries": []}
    donors = module.raw["buffer_donor"] or {"entries": []}
    parameters = [i for i in module.entry.instructions if i.opcode == "parameter"]
    return {
        "collectives": true_collectives(module, runs, mesh),
        "fusions": fusions,
        "nested fusions": nested,
        "loops": true_loops(module, runs),
        "custom calls": (
            ("target",),
            [(i.raw["custom_call_target"],) for i in module.all("custom-call", "custom-call-start")],
        ),
        "aliases": (
            ("output", "parameter", "kind"),
            [
                (tuple(e["output_shape_index"]), e["parameter_number"], ALIAS_KINDS[e["kind"]])
                for e in aliases["entries"]
            ],
        ),
        "donors": (("parameter",), [(e["parameter_number"],) for e in donors["entries"]]),
        "parameters": (
            ("number", "bytes", "sharding"),
            [
                (i.raw["parameter_number"], shape_bytes(i.shape), true_sharding(i.raw["sharding"]))
                for i in parameters
            ],
        ),
        "instructions": sum(len(c.instructions) for c in printed),
        "computations": len(printed),
        "bytes of arguments": facts["argument"],
        "bytes of results": facts["output"],
        "bytes of aliased results": facts["alias"],
        "replicas and partitions": (module.replicas, module.partitions),
        "scheduled": module.raw["schedule"] != b"",
        "problems": [],
    }


def read_by_jaxscope(text: str, facts: dict[str, Any]) -> dict[str, Rows | object]:
    """Return the same figures as ``truth``, as jaxscope reads them from the text."""
    mesh = [(axis, size) for axis, size in facts["mesh"] or []]
    found = texts.analyze(text, mesh=mesh or None)
    memory = found.memory
    calls = [(target,) for target, n in found.custom_calls.items() for _ in range(n)]
    return {
        "collectives": (
            COLLECTIVE,
            [
                (
                    *(c.kind, c.bytes, c.operand_bytes, c.executions),
                    *(*said_devices(c, mesh), c.is_async, said_branches(c)),
                )
                for c in found.collectives
            ],
        ),
        "fusions": (
            FUSION,
            [
                (f.kind, f.bytes_in, f.bytes_out, sum(f.ops.values()), f.executions)
                for f in found.fusions.each
            ],
        ),
        "nested fusions": (
            ("kind",),
            [(kind,) for kind, n in found.fusions.nested_by_kind.items() for _ in range(n)],
        ),
        "loops": (LOOP, [(loop.name, loop.trip_count, loop.executions) for loop in found.loops]),
        "custom calls": (("target",), calls),
        "aliases": (
            ("output", "parameter", "kind"),
            [(tuple(a.output), a.parameter, a.kind) for a in memory.aliases],
        ),
        "donors": (("parameter",), [(number,) for number in memory.donors]),
        "parameters": (
            ("number", "bytes", "sharding"),
            [(p.number, p.bytes, said_sharding(p.sharding)) for p in memory.parameters],
        ),
        "instructions": found.instructions,
        "computations": found.computations,
        "bytes of arguments": memory.argument_bytes,
        "bytes of results": memory.output_bytes,
        "bytes of aliased results": memory.alias_bytes,
        "replicas and partitions": (found.replica_count, found.num_partitions),
        "scheduled": found.scheduled,
        "problems": [problem.text for problem in found.problems],
    }


def compare(text: str, binary: bytes, facts: dict[str, Any]) -> Compared:
    """Compare a compiled text, as jaxscope reads it, with the binary form of the same module.

    Args:
      facts: the mesh of the program, as (axis, size), and the compiler's memory figures in bytes.
    """
    module = Module(binary, math.prod(size for _, size in facts["mesh"] or []))
    true, read, result = truth(module, facts), read_by_jaxscope(text, facts), Compared()
    for what, expected in true.items():
        given = read[what]
        if isinstance(expected, tuple) and isinstance(expected[0], tuple):
            result.counts[what] = len(expected[1])
            _compare_rows(what, given, expected, result)
        elif given == expected:
            continue
        elif what == "bytes of results" and given is not None and given - expected == _table(module):
            result.not_compared.append(f"{given - expected} {TABLE}")
        else:
            line = f"{what}: jaxscope {given}, truth {expected}"
            (result.differs if given is not None else result.unknown).append(line)
    if any(NO_AXES in row for row in true["collectives"][1]):
        result.not_compared.append(
            "members of groups that do not run along axes: jaxscope keeps their number, size and axes"
        )
    if any(row[0] in ("send", "recv") for row in true["collectives"][1]):
        result.not_compared.append(
            "devices of sends between slices: the binary form has no field for them, only libtpu's text"
        )
    return result


def _table(module: Module) -> int:
    """Return the bytes between the two sizes of the table of results."""
    bytes_of_table = 4 * len(module.entry.root.shape["tuple_shapes"])
    return -(-bytes_of_table // 512) * 512 - -(-bytes_of_table // 32) * 32


def _compare_rows(what: str, given: Rows, expected: Rows, result: Compared) -> None:
    """Compare rows in any order. A row that leaves open what the truth has is ``unknown``."""
    fields = expected[0]
    mine, theirs = Counter(given[1]), Counter(expected[1])
    extra, missing = list((mine - theirs).elements()), list((theirs - mine).elements())
    for row in list(extra):
        fits = [t for t in missing if all(a in (None, b) for a, b in zip(row, t, strict=True))]
        if fits:
            extra.remove(row)
            missing.remove(fits[0])
            pairs = zip(fields, row, fits[0], strict=True)
            left_open = [f"{name} {b}" for name, a, b in pairs if a is None and b is not None]
            result.unknown.append(f"{what}: {row[0]}: {', '.join(left_open)}")
    for who, rows in (("only jaxscope", extra), ("only the truth", missing)):
        for row in rows:
            pairs = ", ".join(f"{name} {value}" for name, value in zip(fields, row, strict=True))
            result.differs.append(f"{what}: {who}: {pairs}")


def compiled(target: str, names: Sequence[str], folder: Path) -> str | None:
    """Compile programs for a target into ``folder``, in a process. One that dies is started again behind the
    program at which it died. Return why nothing could be compiled, or None."""
    from jaxscope.analysis import machines
    from jaxscope.targets import client, gpus, process

    env = {**os.environ, "JAX_PLATFORMS": "cpu"}
    if target != "cpu":
        platform = machines.parse(target).platform
        if (lacking := client.missing(platform)) is not None:
            return lacking.what
        env = process.environment(os.environ)
        if platform == "cuda":
            env["XLA_FLAGS"] = gpus.flags(env.get("XLA_FLAGS", ""))
    waiting = list(names)
    while waiting:
        command = [sys.executable, str(PROGRAMS), "--target", target, str(folder), *waiting]
        ended = subprocess.run(command, env=env, capture_output=True, text=True)
        done = {path.stem for path in folder.glob("*.json")}
        rest = [name for name in waiting if name not in done]
        if ended.returncode == 0 or not rest:
            return None
        if not (folder / "now").exists():
            return ended.stderr.strip().splitlines()[-1][:MESSAGE]
        died = f"the compiler's process ended with exit code {ended.returncode}"
        (folder / f"{rest[0]}.json").write_text(json.dumps({"error": died}))
        waiting = rest[1:]
    return None


def measure(target: str, names: Sequence[str], folder: Path) -> dict[str, Any]:
    """Compile programs for one target and compare them; print a line for each. Return what was found."""
    lacking = compiled(target, names, folder)
    if lacking is not None:
        print(f"{target}: not compared: {lacking}")
        return {"not_compared": lacking}
    rows: dict[str, Any] = {}
    for name in names:
        facts = json.loads((folder / f"{name}.json").read_text())
        if "error" in facts:
            error = " ".join(facts["error"].split())[:MESSAGE]
            found = Compared(not_compared=[f"it does not compile: {error}"])
        else:
            binary = (folder / f"{name}.hlo.pb").read_bytes()
            found = compare((folder / f"{name}.hlo.txt").read_text(), binary, facts)
        rows[name] = {key: value for key, value in asdict(found).items() if value}
        show(target, name, found)
    return rows


def show(target: str, name: str, found: Compared) -> None:
    counts = ", ".join(f"{n} {what}" for what, n in found.counts.items() if n)
    print(f"{target} {name}: {'DIFFERS' if found.differs else 'equal' if found.counts else '-'}; {counts}")
    for word in ("differs", "unknown", "not_compared"):
        for line, times in Counter(getattr(found, word)).items():
            print(f"    {word.replace('_', ' ')}: {line}{f' ({times} times)' if times > 1 else ''}")


def summary(targets: dict[str, Any]) -> dict[str, Any]:
    """Return the sums of all modules that were compared."""
    rows = [row for found in targets.values() for row in found.values() if isinstance(row, dict)]
    compared = [row for row in rows if "counts" in row]
    sums: Counter[str] = Counter()
    for row in compared:
        sums.update(row["counts"])
    return {
        "modules": len(compared),
        "equal": sum("differs" not in row for row in compared),
        "with_unknown": sum("unknown" in row for row in compared),
        "not_compiled": len(rows) - len(compared),
        "things": dict(sums),
    }


def compact(figures: dict[str, Any]) -> str:
    """Return JSON with one line for each module. Equal messages of a module are counted."""
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in figures.items() if key != "targets"]
    targets = []
    for target, rows in figures["targets"].items():
        modules = []
        for name, row in rows.items():
            short = dict(row) if isinstance(row, dict) else row
            for word in ("differs", "unknown", "not_compared"):
                if word in short and isinstance(short, dict):
                    short[word] = dict(Counter(short[word]))
            modules.append(f"   {json.dumps(name)}: {json.dumps(short)}")
        joined = ",\n".join(modules)
        targets.append(f"  {json.dumps(target)}: {{\n{joined}\n  }}")
    joined = ",\n".join(targets)
    return "{\n" + ",\n".join([*lines, f' "targets": {{\n{joined}\n }}']) + "\n}\n"


def programs() -> list[str]:
    """Return the names of the programs, in the order of their file."""
    lines = PROGRAMS.read_text().splitlines()
    return [
        line.removeprefix("def ").partition("(")[0] for mark, line in pairwise(lines) if mark == "@program"
    ]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("names", nargs="*", metavar="NAME")
    options.add_argument("--targets", default=",".join(TARGETS))
    options.add_argument("--keep", type=Path, help="a folder for the texts and the binary forms")
    options.add_argument("-o", "--out", type=Path)
    given = options.parse_args()
    import jax

    found: dict[str, Any] = {}
    for target in given.targets.split(","):
        with tempfile.TemporaryDirectory() as temporary:
            folder = (given.keep or Path(temporary)) / target.replace("*", "x").replace(":", "_")
            folder.mkdir(parents=True, exist_ok=True)
            for old in folder.iterdir():
                old.unlink()
            found[target] = measure(target, given.names or programs(), folder)
    total = summary(found)
    print(f"{json.dumps(total)}\nin all modules {NEVER}")
    if given.out:
        version = {"jax": jax.__version__, "python": sys.version.split()[0]}
        figures = {**version, "sum": total, "never": NEVER, "targets": found}
        given.out.write_text(compact(figures))
    sys.exit(int(total["equal"] < total["modules"]))


if __name__ == "__main__":
    main()
