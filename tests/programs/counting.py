"""Count traces, lowerings and compilations per function from JAX's own compile log.

    python tests/programs/counting.py OUT.json program.py args...
    python tests/programs/counting.py OUT.json -m package args...

Runs the program in this process as `__main__` and, however it ends, writes

    {"train_step": {"traces": 2, "lowerings": 2, "compilations": 2}, ...}

to OUT.json. The program's stdout and stderr are its own: the log lines are read and not printed.
This is the independent count that tests compare with, so it shares no code with what it checks.

Where the numbers come from: with `jax_log_compiles` set, the logger `jax._src.dispatch` emits, at level
WARNING, these three lines (the same on JAX 0.10.2 and 0.12.0.1):

    Finished tracing NAME for jit in SECONDS sec
    Finished jaxpr to MLIR module conversion jit(NAME) in SECONDS sec
    Finished XLA compilation of jit(NAME) in SECONDS sec

What they do not say:

- "Finished tracing" also wraps a hit in the trace cache (the same function with new jit options, say), so
  `traces` is an upper bound of the times a Python body ran at top level.
- Traces inside other traces, and traces under `grad` or `vmap` outside jit, are not logged: a jitted function
  called only from another one has no entry, and lowerings under an eager `grad` or `vmap` have no trace.
- "Finished XLA compilation" also wraps a hit in the persistent compilation cache.
- A phase that raises is logged as finished too.
- Functions are told apart by name only. Two functions of one name, all lambdas (`<lambda>`), and partials of
  callables without a name (`<unnamed function>`) share an entry. A `pmap` is one `_fun` for JAX 0.10 and later.
- Eager operations are in it under their primitive's name (`broadcast_in_dim`, `multiply`); the operations that
  JAX compiles for itself while it moves data (`_multi_slice`) are in it as well.
- Only this process is counted. Children of `multiprocessing` are not.
- An abstract evaluation (`jax.eval_shape`, which Haiku's `init` uses) is a trace without a lowering.
- The program starts with JAX already imported and logging compiles: one that sets JAX_* variables for itself,
  changes `jax_log_compiles`, or raises the level of these loggers needs another witness.
"""

import collections
import json
import logging
import os
import re
import runpy
import sys
import threading
from pathlib import Path

LOGGERS = ("jax._src.dispatch", "jax._src.interpreters.pxla", "jax._src.compiler")
PHASES = (
    ("traces", re.compile(r"Finished tracing (.+) for jit in \S+ sec$")),
    ("lowerings", re.compile(r"Finished jaxpr to MLIR module conversion (.+) in \S+ sec$")),
    ("compilations", re.compile(r"Finished XLA compilation of (.+) in \S+ sec$")),
)
NOT_PRINTED = ("Compiling ", "Persistent compilation cache hit")  # the other lines that the setting adds
WRAPPED = re.compile(r"^(?:jit|pjit|pmap)\((.*)\)$", re.DOTALL)


class Counts(logging.Filter):
    """Sees each record of a logger, counts those of the compile log, and keeps them from being printed."""

    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()
        self.by_name = collections.defaultdict(lambda: dict.fromkeys((phase for phase, _ in PHASES), 0))

    def filter(self, record):
        text = record.getMessage()
        for phase, pattern in PHASES:
            if match := pattern.match(text):
                name = match[1]
                if wrapped := WRAPPED.match(name):
                    name = wrapped[1]
                with self.lock:
                    self.by_name[name][phase] += 1
                return False
        return not text.startswith(NOT_PRINTED)


def count():
    """Start counting in this process; returns the filter, whose `by_name` grows."""
    import jax

    jax.config.update("jax_log_compiles", True)
    counts = Counts()
    for name in LOGGERS:
        logging.getLogger(name).addFilter(counts)
    return counts


def run(argv):
    """Run `program.py args...` or `-m module args...` as Python would, in this process."""
    if argv[0] == "-m":
        sys.argv = argv[1:]
        sys.path[0] = str(Path.cwd())
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = argv
        sys.path[0] = str(Path(argv[0]).resolve().parent)
        runpy.run_path(argv[0], run_name="__main__")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__.splitlines()[2].strip())
    out, argv, parent = Path(sys.argv[1]).resolve(), sys.argv[2:], os.getpid()
    counts = count()
    try:
        run(argv)
    finally:
        if os.getpid() == parent:
            out.write_text(json.dumps(dict(sorted(counts.by_name.items())), indent=1) + "\n")


if __name__ == "__main__":
    main()
