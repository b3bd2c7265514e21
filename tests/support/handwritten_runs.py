"""Write runs by hand, as capture would: no JAX needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jaxscope.log import store
from jaxscope.log.store import RunDir
from jaxscope.log.writer import Writer
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Device, Frame, Key, Leaf, Memory, Sharding, Static

T0 = 1_767_323_045_000_000_000  # 2026-01-02 03:04:05 UTC
CWD = "/home/ann/work"
ONE_CPU = Sharding("SingleDeviceSharding", "cpu:0", "0", None, None, "unpinned_host")
TWO_CPU = Sharding("SingleDeviceSharding", "cpu:1", "1", None, None, "unpinned_host")


def leaf(path: str, *shape: int, dtype: str = "float32", **more: Any) -> Leaf:
    """Return a jax.Array on one device, unless ``more`` changes that."""
    return Leaf(
        **{
            "path": path,
            "type": "jax.Array",
            "shape": shape,
            "dtype": dtype,
            "weak_type": False,
            "sharding": 0,
            "committed": False,
            "memory_kind": "unpinned_host",
            "layout": str(tuple(range(len(shape)))),
            **more,
        }
    )


def key(*leaves: Leaf, **more: Any) -> Key:
    return Key(
        **{
            "arguments": list(leaves),
            "tree": f"PyTreeDef(({', '.join('*' for _ in leaves)}))",
            "call_form": f"{len(leaves)} positional",
            "context": "c1",
            "shardings": [ONE_CPU],
            "function_object": 1,
            **more,
        }
    )


def static(path: str, value: object, **more: Any) -> Static:
    return Static(
        **{
            "path": path,
            "repr": repr(value),
            "type": type(value).__name__,
            "compares": "value",
            "hash": hash(value),
            **more,
        }
    )


def function(
    name: str, file: str | None = f"{CWD}/train.py", line: int | None = 88, **more: Any
) -> ev.FunctionSeen:
    return ev.FunctionSeen(
        **{
            "function": f"{name}@{file or '?'}:{line or '?'}",
            "name": name.rpartition(".")[2],
            "qualname": name,
            "module": "__main__",
            "file": file,
            "line": line,
            **more,
        }
    )


class Log:
    """One process's log, its clock moved by hand."""

    def __init__(self, run: RunDir, pid: int = 1000, at: float = 0.0, **started: Any) -> None:
        self.run = run
        self.now = at
        first = ev.RunStarted(
            **{
                "t_ns": self._t(),
                "name": run.path.name,
                "argv": ["/usr/bin/python3", "train.py", "--epochs", "3"],
                "cwd": CWD,
                "python": "3.13.1",
                "jax": "0.12.0.1",
                "jaxlib": "0.12.0.1",
                "jaxscope": "0.1.0",
                "ir": "all",
                **started,
            }
        )
        self.writer = Writer(run, lambda _forked: first)
        self.writer._pid = pid
        self.writer.open()
        self.call = 0

    def _t(self) -> int:
        return T0 + int(self.now * 1e9)

    def say(self, event: ev.Event, after: float = 0.0) -> None:
        import msgspec

        self.now += after
        self.writer.emit(msgspec.structs.replace(event, t_ns=self._t()))

    def backend(self, devices: int = 1, kind: str = "cpu", platform: str = "cpu") -> None:
        self.writer.process_index = 0
        self.say(
            ev.BackendSeen(
                platform=platform, devices=[Device(i, kind, 0) for i in range(devices)], process_count=1
            )
        )

    def missed(
        self, seen: ev.FunctionSeen, k: Key | None, line: int = 140, step: int | None = None, **more: Any
    ) -> int:
        self.call += 1
        site = Frame(f"{CWD}/train.py", line, "main")
        self.say(
            ev.Missed(
                **{"call": self.call, "function": seen.function, "site": site, "key": k, "step": step, **more}
            )
        )
        return self.call

    def phase(self, call: int, phase: str, seconds: float, **more: Any) -> None:
        """Write a phase from beginning to end."""
        self.say(ev.PhaseBegan(call=call, phase="trace" if phase == "reuse" else phase))
        kind = {"trace": ev.Traced, "lower": ev.Lowered, "compile": ev.Compiled, "reuse": ev.TraceReused}[
            phase
        ]
        self.say(kind(call=call, seconds=seconds, **more), after=seconds)

    def compiled(
        self, seen: ev.FunctionSeen, k: Key | None, seconds: tuple[float, float, float] = (0.5, 0.1, 6.4), *,
        program: str | None = None, texts: dict[str, str] | None = None, cache: str | None = "off",
        cost: dict[str, float] | None = None, **more: Any,
    ) -> int:  # fmt: skip
        """A call that was traced, lowered and compiled."""
        call = self.missed(seen, k, **more)
        self.phase(call, "trace", seconds[0])
        self.phase(
            call,
            "lower",
            seconds[1],
            program=program,
            module=f"jit_{seen.name}",
            num_partitions=1,
            platforms=["cpu"],
        )
        self.phase(
            call, "compile", seconds[2], program=program, persistent_cache=cache,
            memory=Memory(4096, 128, 0, 65536, None), cost={"flops": 1e9, "bytes accessed": 2e6} if cost is None else cost,
        )  # fmt: skip
        for stage, text in (texts or {}).items():
            blob, size = self.run.put_text(text)
            self.say(ev.ProgramText(program=program or "", stage=stage, blob=blob, bytes=size))
        return call

    def end(self, how: str = "exit") -> None:
        self.say(ev.RunEnded(how=how))
        self.writer.close()


def copied(line: int = 31, count: int = 200, **more: Any) -> ev.Event:
    """So many copies to the host at this line of train.py, one a step, unless ``more`` says otherwise."""
    return ev.Transferred(
        **{
            "direction": "device_to_host",
            "via": "float",
            "site": Frame(f"{CWD}/train.py", line, "main"),
            "text": "float(loss)",
            "count": count,
            "bytes": 4 * count,
            "waits": count,
            "seconds": 1.3,
            "steps": count,
            "first_step": 1,
            "last_step": count,
            "first_ns": T0,
            "last_ns": T0 + 2_000_000_000,
            **more,
        }
    )


def exited(
    run: RunDir, code: int | None = 0, *, pid: int = 1000, seconds: float = 134.0, signal: int | None = None
) -> None:
    """Write the keeper's log."""
    event = ev.ProgramExited(
        t_ns=T0 + int(seconds * 1e9), program_pid=pid, exit_code=code, signal=signal, seconds=seconds
    )
    writer = Writer(run, lambda _forked: event)
    writer._pid = 999
    writer.open()
    writer.close()


def training(path: Path) -> RunDir:
    """Write a training run with three kinds of recompiles, eager operations, a library's functions."""
    run = store.create(path, name="train", argv=["train.py", "--epochs", "3"])
    log = Log(run)
    log.now = 2.0
    log.say(
        ev.ContextSeen(
            context="c1", settings={"jax_enable_x64": "False", "jax_default_matmul_precision": "None"}
        )
    )
    log.backend(8)
    step, evaluate = function("train_step", line=88), function("eval_step", line=120)
    add = function("add", None, None, eager=True, form="primitive")
    init = function(
        "normal",
        "/usr/lib/python3/site-packages/jax/_src/random.py",
        700,
        library=True,
        module="jax._src.random",
    )
    scale = function("main.<locals>.<lambda>", f"{CWD}/data.py", 31, form="lambda")
    for f in (step, evaluate, add, init, scale):
        log.say(f)
    log.say(ev.Watched(function=step.function, step=True))
    params = [
        leaf(f"state.params['layer{i}']['{n}']", 512, 512) for i in range(74) for n in ("kernel", "bias")
    ]
    half = [leaf(p.path, 512, 512, dtype="bfloat16") for p in params]
    ids, short = leaf("batch['ids']", 32, 512, dtype="int32"), leaf("batch['ids']", 32, 511, dtype="int32")
    weak = leaf("state.count", dtype="int32", weak_type=True)
    strong = leaf("state.count", dtype="int32")
    for n in range(20):
        log.compiled(
            add,
            key(leaf("x", n + 1), leaf("y", n + 1)),
            (0.001, 0.002, 0.05),
            line=31 if n % 3 else 40,
            cache="miss",
        )
    for _ in range(3):
        log.compiled(init, key(leaf("key", 2, dtype="uint32")), (0.1, 0.02, 0.2), line=52)
    texts = {"stablehlo": "module @jit_train_step {\n}\n", "hlo": "HloModule jit_train_step\n"}
    log.compiled(step, key(*params, weak, ids), (1.5, 0.3, 7.0), program="aa11", texts=texts, step=1)
    log.compiled(step, key(*params, strong, ids), (1.5, 0.3, 6.8), program="bb22", texts=texts, step=2)
    log.now += 20
    log.compiled(step, key(*half, strong, ids), (1.4, 0.3, 5.2), step=204)
    log.now += 5
    log.compiled(step, key(*half, strong, short), (1.4, 0.3, 5.3), step=376, cache="hit")
    for n in range(12):
        log.compiled(scale, key(leaf("x", 4), function_object=n + 1), (0.01, 0.02, 0.1), line=33, step=n)
    log.compiled(evaluate, key(*half, short, static=[static("mode", "greedy")]), (0.8, 0.2, 8.2), line=150)
    slow = log.missed(
        step,
        key(
            *half,
            strong,
            leaf("batch['ids']", 32, 512, dtype="int32", type="numpy.ndarray", sharding=None, committed=None),
        ),
        step=380,
    )
    assert slow
    log.say(ev.MissesCounted(function=step.function, count=40))
    log.say(ev.Called(function=step.function, count=381))
    log.say(ev.Step(index=381))
    log.say(ev.Degraded(seam="trace_frame", reason="jax._src.pjit._trace_for_jit has no local fun"))
    log.end()
    exited(run)
    return run
