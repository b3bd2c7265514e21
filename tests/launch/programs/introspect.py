"""Says all that a program can find out about the process it runs in."""

import json
import os
import re
import sys

BEFORE = sorted(sys.modules)
FINDERS = [getattr(f, "__name__", type(f).__name__) for f in sys.meta_path]

import pickle  # noqa: E402
import resource  # noqa: E402
import signal  # noqa: E402
import threading  # noqa: E402
import warnings  # noqa: E402
from pathlib import Path  # noqa: E402


class Mine:
    pass


def main_module():
    main = sys.modules["__main__"]
    return {
        name: repr(value)
        for name, value in vars(main).items()
        if name.startswith("__") and name != "__builtins__"
    }


def open_descriptors():
    return sorted(int(path.name) for path in Path("/dev/fd").iterdir() if path.exists())


def kernel_view():
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return {}
    lines = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    # Signals 32 and 33 are glibc's own, and its posix_spawn leaves them ignored; it sets them itself
    # before it needs them.
    ignored = int(lines["SigIgn"], 16) & ~(0b11 << 31)
    return {"ignored": ignored, **{k: lines.get(k) for k in ("SigBlk", "SigCgt", "Threads", "NoNewPrivs")}}


def about(modules_before):
    return {
        "argv": sys.argv,
        "orig_argv": sys.orig_argv[1:],
        "executable": sys.executable,
        "path": sys.path,
        "path caches": sorted(sys.path_importer_cache),
        "path hooks": len(sys.path_hooks),
        "flags": str(sys.flags),
        "xoptions": sys._xoptions,
        "warnings": [sys.warnoptions, repr(warnings.filters)],
        "modules": modules_before,
        "finders": FINDERS,
        "sitecustomize": repr(sys.modules.get("sitecustomize")),
        "main": main_module(),
        "pickled": len(pickle.loads(pickle.dumps([Mine(), Mine]))),
        "handlers": {s.name: repr(signal.getsignal(s)) for s in signal.Signals},
        "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "pending": sorted(signal.sigpending()),
        "kernel": kernel_view(),
        "threads": [t.name for t in threading.enumerate()],
        "hooks": [repr(sys.excepthook), repr(sys.displayhook), repr(sys.gettrace()), repr(sys.getprofile())],
        "terminals": [os.isatty(fd) for fd in range(3)],
        "descriptors": open_descriptors(),
        "group": os.getpgrp(),
        "session": os.getsid(0),
        "directory": str(Path.cwd()),
        "umask": oct(os.umask(0o22)),
        "nice": os.nice(0),
        "limits": {
            n: resource.getrlimit(getattr(resource, n)) for n in dir(resource) if n.startswith("RLIMIT")
        },
        "encodings": [
            s.encoding + str(s.line_buffering) + str(s.write_through) for s in (sys.stdout, sys.stderr)
        ],
        "stdin": sys.stdin.read(),
        "environment": dict(os.environ),
    }


if __name__ == "__main__":
    print(re.sub(r" at 0x[0-9a-f]+", "", json.dumps(about(BEFORE))))
    print("to stderr", file=sys.stderr)
