"""Write runs by hand that together show everything a screen can look like."""

from __future__ import annotations

import math
from pathlib import Path

import handwritten_runs
import msgspec
from handwritten_runs import Log, function, key, leaf

from jaxscope.analysis import machines
from jaxscope.log import ranks, store
from jaxscope.log.store import RunDir
from jaxscope.log.writer import Writer
from jaxscope.schema import events as ev
from jaxscope.schema.arrays import ArrayGroup, DeviceMemory
from jaxscope.schema.keys import Device, Frame, Memory, Sharding
from jaxscope.schema.targets import Target

HOSTILE = "\x1b]0;owned\x07\x1b[2J[bold red]evil[/] \u202eesrever\r\nnext"

SOURCE = """\
import jax


def loss(w, x):
    h = x @ w
    return (h * h).sum()


@jax.jit
def train_step(w, x):
    return w - loss(w, x)
"""

STABLEHLO = """\
module @jit_train_step attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x4xf32> loc("w"), %arg1: tensor<8x4xf32> loc("x")) -> (tensor<4x4xf32>) {
    %0 = stablehlo.dot_general %arg1, %arg0, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32> loc(#loc3)
    %1 = stablehlo.multiply %0, %0 : tensor<8x4xf32> loc(#loc4)
    %2 = stablehlo.subtract %arg0, %arg0 : tensor<4x4xf32> loc(#loc5)
    return %2 : tensor<4x4xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("FILE":5:8)
#loc4 = loc("FILE":6:12)
#loc5 = loc("FILE":11:11)
"""

HLO = """\
HloModule jit_train_step, is_scheduled=true, num_partitions=8

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%fused (p: f32[8,4]) -> f32[8,4] {
  %p = f32[8,4]{1,0} parameter(0)
  ROOT %mul.1 = f32[8,4]{1,0} multiply(%p, %p), metadata={op_name="jit(train_step)/mul" source_file="FILE" source_line=6}
}

ENTRY %main (w: f32[4,4], x: f32[8,4]) -> f32[4,4] {
  %w = f32[4,4]{1,0} parameter(0)
  %x = f32[8,4]{1,0} parameter(1)
  %dot.1 = f32[8,4]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(train_step)/dot_general" source_file="FILE" source_line=5}
  %fusion.1 = f32[8,4]{1,0} fusion(%dot.1), kind=kLoop, calls=%fused, metadata={op_name="jit(train_step)/mul" source_file="FILE" source_line=6}
  %all-reduce.1 = f32[8,4]{1,0} all-reduce(%fusion.1), channel_id=1, replica_groups=[1,8]<=[8], use_global_device_ids=true, to_apply=%add, metadata={op_name="jit(train_step)/reduce_sum" source_file="FILE" source_line=6}
  ROOT %sub.1 = f32[4,4]{1,0} subtract(%w, %w), metadata={op_name="jit(train_step)/sub" source_file="FILE" source_line=11}
}
"""


MESH = (("data", 4, "Auto"), ("model", 2, "Auto"))
SHARDINGS = [
    Sharding("NamedSharding", f"NamedSharding({spec}) on data=4,model=2", "0-7", MESH, spec, "device")
    for spec in ("P('data', None)", "P()", "P(None, 'model')", "P(('data', 'model'),)")
]


def arrays(
    step: int | None, history: int, *, names: str = "state", line: Frame | None = None, **more
) -> ev.ArraysSeen:
    """Write a look at a small model on 4 x 2 devices, with a list that grows."""
    line = line or Frame("train.py", 11, "main")

    def group(path, n, shape, sharding, parts):
        size = n * 4 * math.prod(shape)
        return ArrayGroup(path, n, shape, "float32", size, size // parts, sharding, True, None, line)

    groups = [
        group(f"{names}.params['dense']['kernel']", 1, (16384, 4096), 0, 4),
        group(f"{names}.params['dense']['bias']", 1, (1024,), 1, 1),
        group(f"{names}.params['out']['kernel']", 1, (4096, 16384), 2, 2),
        group(f"{names}.opt_state[*].mu['dense']['kernel']", 1, (16384, 4096), 1, 1),
        group(f"{names}.opt_state[*].nu['dense']['kernel']", 1, (16384, 4096), 0, 4),
        group("batch['x']", 1, (512, 64), 3, 8),
        group("history[*]", history, (256, 256), 1, 1),
        ArrayGroup(None, 3, (7,), "int32", 84, 84, None, None, None, None),
    ]
    return ev.ArraysSeen(
        why="step", step=step, count=sum(g.count for g in groups), shardings=SHARDINGS, groups=groups,
        addressable="0-7", **more,
    )  # fmt: skip


def texts(file: str) -> dict[str, str]:
    return {"stablehlo": STABLEHLO.replace("FILE", file), "hlo": HLO.replace("FILE", file)}


def typical(path: Path) -> RunDir:
    """Three shapes; a program that communicates; its source is train.py in ``src``, to be the current
    directory.
    """
    run = store.create(path, name="train", argv=["train.py", "--epochs", "3"])
    source = path / "src" / "train.py"
    source.parent.mkdir()
    source.write_text(SOURCE)
    log = Log(run, cwd=str(source.parent))
    log.now = 1.0
    log.backend(8)
    step = function("train_step", "train.py", 10)
    evaluate = function("eval_step", "train.py", 4)
    add = function("add", None, None, eager=True, form="primitive")
    for f in (step, evaluate, add):
        log.say(f)
    log.say(ev.Watched(function=step.function, step=True))
    site = Frame("train.py", 11, "main")
    log.compiled(add, key(leaf("x", 3)), (0.01, 0.01, 0.2), site=site)
    for n, rows in enumerate((32, 31, 30)):
        log.now += 8
        log.compiled(
            step, key(leaf("w", 4, 4), leaf("x", rows, 4)), (0.5, 0.1, 2.4 + n), step=10 * n + 1,
            program=f"p{n}", texts=texts("train.py"), site=site,
        )  # fmt: skip
        log.say(arrays(10 * n + 1, 10 * n + 1))
    log.compiled(evaluate, key(leaf("w", 4, 4)), (0.2, 0.1, 1.0), step=22, site=site)
    log.say(ev.Called(function=step.function, count=40))
    log.say(ev.Step(index=40))
    log.say(arrays(40, 40))
    log.end()
    (path / "output.log").write_text("epoch 1: loss 0.5\r\nepoch 2: loss 0.4\r\n")
    handwritten_runs.exited(run, 0, seconds=60.0)
    return run


class Compiler:
    """Return the log of a program that is compiled for targets."""

    def __init__(self, run: RunDir) -> None:
        self.run, self.writer = run, None

    def say(self, event: ev.Event) -> None:
        if self.writer is None:
            self.writer = Writer(self.run, lambda _: event)
            self.writer.open()
        else:
            self.writer.emit(event)


GIB = 1 << 30
EXHAUSTED = (
    "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. "
    "Used 20.31G of 15.75G hbm. Exceeded hbm capacity by 4.56G.\n\n  program  20.31G\n    HLO temp  19.80G\n"
)
# Of four targets with eight devices and one with sixteen, which is a run of its own.
OUTCOMES: dict[str, dict | str] = {
    "v5e:4x2": {"outcome": "ok", "seconds": 0.91, "peak_bytes": 3 * GIB, "memory": Memory(GIB, GIB, 0, 2 * GIB, 0)},
    "v6e:4x2": "compiling",
    "h100:8": "waiting",
    "a100:8": {"outcome": "crashed", "error": "the compiler ended with signal 11"},
}  # fmt: skip


def lowered_for(
    log: Log, compiler: Compiler, targets: list[str], outcomes: dict, call: int, n: int, file: str, **more
) -> None:
    """Write what a call's trace became for each of ``targets``; ``outcomes``: a result, or its progress."""
    lowered, size = log.run.put_text(texts(file)["stablehlo"])
    for name in targets:
        id, outcome = f"{n}@{name}", outcomes[name]
        skipped = (
            "its custom call tpu_custom_call belongs to another platform" if outcome == "skipped" else None
        )
        made = (
            {}
            if skipped
            else {"program": id, "module": "jit_train_step", "stablehlo": lowered, "stablehlo_bytes": size}
        )
        log.say(
            ev.Retargeted(
                **{
                    "call": call,
                    "target": name,
                    "of": f"p{n}",
                    "seconds": 0.01,
                    "skipped": skipped,
                    **made,
                    **more,
                }
            )
        )
        if outcome in ("waiting", "skipped"):
            continue
        compiler.say(ev.TargetCompiling(program=id, target=name))
        if isinstance(outcome, dict):
            kept = {}
            if outcome["outcome"] == "ok":
                text = texts(file)["hlo"].replace(
                    "%fusion.1 = f32[8,4]{1,0} fusion", "%fusion.1 = f32[8,4]{1,0:T(8,128)} fusion"
                )
                blob, length = log.run.put_text(text)
                kept = {"text": blob, "text_bytes": length}
            compiler.say(ev.TargetCompiled(**{"program": id, "target": name, **kept, **outcome}))


def elsewhere(path: Path) -> RunDir:
    """Write a step with two shapes, compiled for five targets: done, at work, waiting, crashed.

    A run within, on sixteen devices, has one that does not fit; for the second shape it has nothing.
    """
    run = store.create(path, name="train", argv=["train.py"])
    source = path / "src" / "train.py"
    source.parent.mkdir()
    source.write_text(SOURCE)
    site = Frame("train.py", 11, "main")
    step = function("train_step", "train.py", 10)

    def one(directory: RunDir, outcomes: dict, devices: int, shapes: tuple[int, ...]) -> None:
        log, compiler = Log(directory, cwd=str(source.parent)), Compiler(directory)
        log.now = 1.0
        log.say(ev.TargetsWanted(targets=[machines.parse(name) for name in outcomes], forced=devices))
        log.backend(devices)
        log.say(step)
        for n, rows in enumerate(shapes):
            call = log.compiled(
                step, key(leaf("w", 4, 4), leaf("x", rows, 4)), (0.5, 0.1, 2.4), program=f"p{n}",
                texts=texts("train.py"), site=site, step=n + 1,
            )  # fmt: skip
            its = outcomes if n == 0 else dict.fromkeys(outcomes, "skipped")
            lowered_for(log, compiler, list(outcomes), its, call, n, "train.py", partitions=devices)
        log.end()
        handwritten_runs.exited(directory, 0, seconds=9.0)

    one(run, OUTCOMES, 8, (8, 9))
    within = store.create(store.sub_run(run, 16), name="train@16", argv=["train.py"])
    one(within, {"v5e:4x4": {"outcome": "exhausted", "error": EXHAUSTED}}, 16, (8,))
    return run


def varied(path: Path) -> RunDir:
    """Write one program on the host under two settings (``--vary --model=2,4``)."""
    run = store.create(path, name="train", argv=["train.py"], settings={"--model": "2"})
    within = store.create(
        store.sub_run(run, "--model=4"), name="four", argv=["train.py"], settings={"--model": "4"}
    )
    step = function("train_step", "train.py", 10)
    for directory, text in ((run, "train.py"), (within, "sharded.py")):
        log = Log(directory)
        log.now = 1.0
        log.backend(8)
        log.say(step)
        log.compiled(step, key(leaf("w", 4, 4)), program=f"p{text}", texts=texts(text), step=1)
        log.end()
        handwritten_runs.exited(directory, 0, seconds=9.0)
    return run


def varied_with_findings(path: Path) -> RunDir:
    """Write a run under two settings, where another argument changes its shape in each."""
    run = store.create(path, name="train", argv=["train.py"], settings={"--model": "2"})
    within = store.create(
        store.sub_run(run, "--model=4"), name="four", argv=["train.py"], settings={"--model": "4"}
    )
    step = function("train_step", "train.py", 10)
    for directory, name, sizes in ((run, "a", (4, 3)), (within, "b", (4, 5))):
        log = Log(directory)
        log.backend(8)
        log.say(step)
        for n in sizes:
            log.compiled(step, key(leaf(name, n)))
        log.end()
        handwritten_runs.exited(directory, 0, seconds=9.0)
    return run


def elsewhere_hostile(path: Path) -> RunDir:
    """Machines whose names and errors try to take over the terminal."""
    run = store.create(path, name="train", argv=["train.py"])
    log, compiler = Log(run), Compiler(run)
    log.now = 1.0
    names = [HOSTILE, "[/]" + "x" * 300, ""]
    log.say(ev.TargetsWanted(targets=[Target(n, HOSTILE, HOSTILE, (), -1, -8) for n in names]))
    log.backend(8, HOSTILE)
    step = function(HOSTILE)
    log.say(step)
    call = log.compiled(step, key(leaf(HOSTILE, 4)), program="p0", texts=texts("/tmp/" + HOSTILE))
    ok = {"outcome": "ok", "seconds": math.inf, "peak_bytes": -1, "memory": Memory(-1, 1 << 70, 0, 0, 0)}
    outcomes = {
        HOSTILE: {"outcome": "exhausted", "error": HOSTILE * 20},
        names[1]: ok,
        "": {"outcome": HOSTILE, "error": HOSTILE},
    }
    lowered_for(log, compiler, names, outcomes, call, 0, "/tmp/" + HOSTILE)
    log.end()
    handwritten_runs.exited(run, 0, seconds=9.0)
    return run


def empty(path: Path) -> RunDir:
    return store.create(path, name="nothing", argv=["hello.py"])


def failed(path: Path) -> RunDir:
    """Died for want of memory while compiling; its output says so, and so does the recording."""
    run = store.create(path, name="dies", argv=["train.py"])
    log = Log(run)
    log.now = 1.0
    log.backend(1)
    step = function("train_step")
    log.say(step)
    log.compiled(step, key(leaf("x", 8)), (0.5, 0.1, 2.0), step=1)
    call = log.missed(step, key(leaf("x", 9)), step=2)
    log.phase(call, "trace", 0.4)
    log.say(ev.PhaseBegan(call=call, phase="compile"))
    log.now += 3
    log.say(ev.PhaseFailed(call=call, phase="compile", seconds=3.0))
    site = Frame(f"{handwritten_runs.CWD}/train.py", 140, "main")
    told = "RESOURCE_EXHAUSTED: Out of memory allocating 17179869184 bytes."
    memory = [DeviceMemory(d, 15 << 30, 15 << 30, 16 << 30) for d in range(8)]
    look = arrays(1, 3, error=told, site=site, memory=memory)
    log.say(msgspec.structs.replace(look, why="exhausted"))
    log.say(
        ev.Died(
            error="jax.errors.JaxRuntimeError",
            message=told,
            stack=[site, Frame(f"{handwritten_runs.CWD}/train.py", 160, "<module>")],
        )
    )
    log.end()
    (path / "output.log").write_text(
        "epoch 1\nTraceback (most recent call last):\n"
        '  File "/home/ann/work/train.py", line 140, in main\n    state = train_step(state)\n'
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 17179869184 bytes.\n"
    )
    handwritten_runs.exited(run, 1, seconds=9.0)
    return run


def degraded(path: Path) -> RunDir:
    """Write a run of a JAX that was not fully understood: no keys, no texts, no end."""
    run = store.create(path, name="blind", argv=["train.py"])
    log = Log(run)
    log.now = 1.0
    step = function("train_step", None, None)
    log.say(step)
    log.say(ev.Degraded(seam="cache_miss", reason="jax._src.pjit has no _infer_params"))
    for _ in range(2):
        log.compiled(step, None, (0.5, 0.1, 2.0))
    with next((path / "events").glob("*.jsonl")).open("ab") as f:
        f.write(b'{"kind":"FromTheFuture","t_ns":1}\nnot json\n')
    return run


def hostile(path: Path) -> RunDir:
    """Write names, paths, values, texts and output that try to take over the terminal."""
    run = store.create(path, name=HOSTILE, argv=["train.py", HOSTILE])
    log = Log(run)
    log.now = 1.0
    log.backend(8, HOSTILE)
    step = function(HOSTILE, "/tmp/" + HOSTILE, 3)
    log.say(step)
    source = "/tmp/[red]" + "x.py"
    for n in range(3):
        log.compiled(
            step, key(leaf(f"x[{HOSTILE!r}]", n), leaf(HOSTILE, 4), static=[handwritten_runs.static("[/]", HOSTILE + str(n))]),
            (0.1, 0.1, 1.0), program=f"p{n}", step=n,
            texts={k: t + HOSTILE for k, t in texts(source).items()},
            site=Frame("/tmp/" + HOSTILE, 3, HOSTILE),
        )  # fmt: skip
    log.say(ev.Degraded(seam=HOSTILE, reason=HOSTILE))
    look = arrays(1, 2, names=HOSTILE, line=Frame("/tmp/" + HOSTILE, 3, HOSTILE))
    odd = Sharding(HOSTILE, HOSTILE, "0-7", ((HOSTILE, 8, "Auto"),), f"P({HOSTILE!r})", HOSTILE)
    names = ["['", "].[", "a" * 3000, HOSTILE, "[*][*]…", ""]
    more = [
        ArrayGroup(n, 1, (8, -1), HOSTILE, 99 - k, None, 4, None, HOSTILE, None, HOSTILE)
        for k, n in enumerate(names)
    ]
    log.say(msgspec.structs.replace(look, groups=[*look.groups, *more], shardings=[*look.shardings, odd]))
    log.end()
    (path / "output.log").write_bytes(HOSTILE.encode() + b"\xff\x1b[31mred\x1b[0m\x9b2J\rover\n")
    handwritten_runs.exited(run, 0, seconds=9.0)
    return run


ALL = {"empty": empty, "typical": typical, "failed": failed, "degraded": degraded, "hostile": hostile}


# Not on every screen: only where a machine can be chosen they look different.
ELSEWHERE = {"elsewhere": elsewhere, "elsewhere_hostile": elsewhere_hostile, "varied": varied}


def of_ranks(path: Path) -> RunDir:
    """Write a job of four processes of which one compiled another program. Return the place of rank 0."""
    for n in range(4):
        log = Log(ranks.join(path, "j", n, 4, name="train"), pid=1000 + n, how="run")
        log.writer.process_index = n
        devices = [Device(i, "cpu", i) for i in range(4)]
        log.say(ev.BackendSeen(platform="cpu", devices=devices, process_count=4))
        step, evaluate = function("train_step"), function("evaluate", line=97)
        log.say(step)
        log.say(evaluate)
        log.now = 2.0 + n / 4
        for f, program in ((step, "a"), (evaluate, "c" if n == 2 else "b"), (step, "d")):
            call = log.missed(f, key(leaf("x", 8)))
            log.phase(call, "lower", 0.25, program=program)
            log.phase(call, "compile", 3.0 + n, program=program, devices="0-3", persistent_cache="off")
        log.end()
        handwritten_runs.exited(log.run, pid=1000 + n, seconds=30.0)
    return RunDir(path / "ranks" / "00000")


def running(path: Path) -> RunDir:
    """Write a run that goes on: its keeper is alive, a program is being compiled."""
    run = store.create(path, name="train", argv=["train.py"])
    log = Log(run)
    log.now = 1.0
    step = function("train_step")
    log.say(step)
    log.missed(step, key(leaf("x", 8)), step=1)
    log.say(ev.PhaseBegan(call=1, phase="compile"))
    run.heartbeat.touch()
    return run
