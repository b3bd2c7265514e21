"""Write runs with programs for targets by hand, around texts and messages of real compilers."""

from __future__ import annotations

import gzip
from pathlib import Path

from handwritten_runs import Log, function, key, leaf

from jaxscope.analysis import machines
from jaxscope.log import store
from jaxscope.log.store import RunDir
from jaxscope.log.writer import Writer
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Memory

HLO = Path(__file__).parents[1] / "data" / "hlo"
GIB = 1 << 30
STEP, EVAL = function("train_step"), function("eval_step", line=120)
# As libtpu 0.0.42 said it.
EARLY = (
    "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries (20.31G) exceeds"
    " available HBM (15.75G)."
)
STABLEHLO = (
    "module @jit_train_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {\n"
    "  func.func public @main(%arg0: tensor<65536x4096xf32>, %arg1: tensor<64x64xf32>) -> (tensor<64x64xf32>) {\n"
    "    return %arg1 : tensor<64x64xf32>\n  }\n}\n"
)


def text(name: str, stage: str) -> str:
    """Return a text of a real compiler: ``tf6_scan_fsdp_remat__tpuv5e_jax0102``, hlo or stablehlo."""
    end = {"hlo": "hlo.txt.gz", "stablehlo": "stablehlo.mlir.gz"}[stage]
    return gzip.decompress((HLO / f"{name}.{end}").read_bytes()).decode()


class Aimed:
    """A run that was compiled for ``targets``, too."""

    def __init__(self, path: Path, *targets: str, **meta: object) -> None:
        self.run: RunDir = store.create(path, name="train", argv=["train.py", "--epochs", "3"], **meta)
        self.log = Log(self.run)
        self.log.say(ev.ContextSeen(context="c1", settings={}))
        self.targets = [machines.parse(t) for t in targets]
        self.log.say(ev.TargetsWanted(targets=self.targets, forced=self.targets[0].devices))
        self.log.backend(self.targets[0].devices)
        for f in (STEP, EVAL):
            self.log.say(f)
        self._compiler: Writer | None = None

    def called(self, seen=STEP, size=1024, program="c0de", texts=None) -> int:
        """Write a call that was compiled for the CPU in place of the target."""
        k = key(leaf("state.params['dense']", size, 4096), leaf("x", 64, 64))
        return self.log.compiled(seen, k, program=program, texts=texts)

    def lowered(self, call, target, program="7a67", of="c0de", stablehlo=STABLEHLO, skipped=None) -> None:
        made = {}
        if skipped is None:
            blob, size = self.run.put_text(stablehlo)
            made = {
                "program": program,
                "module": "jit_train_step",
                "stablehlo": blob,
                "stablehlo_bytes": size,
            }
        event = ev.Retargeted(
            call=call, target=target, of=of, seconds=0.1, partitions=1, skipped=skipped, **made
        )
        self.log.say(event)

    def made(
        self, target, program="7a67", outcome="ok", hlo=None, temp=2 * GIB, peak=3 * GIB, error=None
    ) -> None:
        """Write the result of the target's compiler."""
        found = {"program": program, "target": target, "outcome": outcome, "seconds": 2.5, "error": error}
        if outcome == "ok":
            blob, size = self.run.put_text(hlo or "HloModule jit_train_step\n")
            memory = Memory(GIB, 0, 0, temp, 0)
            found |= {"text": blob, "text_bytes": size, "memory": memory, "peak_bytes": peak}
        event = ev.TargetCompiled(**found)
        if self._compiler is None:
            self._compiler = Writer(self.run, lambda _: event)
            self._compiler._pid = 998
            self._compiler.open()
        else:
            self._compiler.emit(event)

    def full(self, target="v5e:4x4", program="7a67", of="c0de", seen=STEP, error=EARLY) -> None:
        """Write one function that does not fit into ``target``."""
        self.lowered(self.called(seen, program=of), target, program, of)
        self.made(target, program, "exhausted", error=error)

    def end(self) -> RunDir:
        self.log.end()
        return self.run
