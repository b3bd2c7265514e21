"""``jaxscope doctor``: print versions, where runs are stored, and what can be recorded with the installed
JAX.

This module imports jax and ``jax_internals`` (the package that reads JAX) only when the command runs.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxscope import __version__
from jaxscope.cli import probe
from jaxscope.cli.probe import Field
from jaxscope.errors import JaxscopeError
from jaxscope.log import store

# Patterns of device files below /dev: of GPUs (dxg is one in Windows' subsystem for Linux), then of TPUs.
DEVICE_FILES = (("nvidia[0-9]*", "dxg"), ("accel*", "vfio/[0-9]*"))
DESCRIPTION = """\
Print versions, where runs are kept, and each part of JAX that jaxscope reads: whether the installed JAX has
it, and what cannot be recorded without it. Nothing is compiled and no device is started, except with --probe,
which records a small program in another process and checks that every field of its log is filled. The exit
code is 1 if something is missing.
"""
EXAMPLES = """\
examples:
  jaxscope doctor                 what can be recorded with the installed JAX
  jaxscope doctor --probe         also record a small program, and check the log
"""


def add_parser(subparsers: Any) -> None:
    """Add the command ``jaxscope doctor`` and its options to ``subparsers`` (of argparse)."""
    parser = subparsers.add_parser(
        "doctor", help="what can be recorded here", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument(
        "--probe",
        action="store_true",
        help="compile and record a small program, and check that every field of its log is filled",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    parser.set_defaults(handler=handle)


class _Page:
    """Prints the tables of ``jaxscope doctor``, and collects their rows for the JSON output.

    Attributes:
      facts: a dict for each row: ``name``, ``value``, and ``ok`` (True: available; False: missing; None: only
        information).
      well: whether nothing is missing.
    """

    def __init__(self, *, as_json: bool) -> None:
        from jaxscope.report.console import console

        self._console = None if as_json else console(sys.stdout)
        self.facts: list[dict[str, Any]] = []
        self.well = True

    def fact(self, name: str, value: str, good: bool | None = None) -> None:
        from jaxscope.present.escape import escape

        self.well = self.well and good is not False
        self.facts.append({"name": name, "value": value, "ok": good})
        mark = {True: ("ok       ", "good"), False: ("missing  ", "error"), None: ("         ", "")}[good]
        self._put(mark, (f"{name:<19} ", "bold"), escape(value), hang=29)

    def paragraph(self, text: str) -> None:
        self._put("")
        self._put(text)

    def _put(self, *spans: Any, hang: int = 0) -> None:
        from jaxscope.report.layout import line, put

        if self._console is not None:
            put(self._console, [line(*spans, hang=hang)])


def handle(args: argparse.Namespace) -> int:
    """Run ``jaxscope doctor``: print the tables. Return 1 if something is missing, else 0."""
    as_json = args.format == "json"
    page = _Page(as_json=as_json)
    jax = _general(page)
    general = list(page.facts)
    rows = _parts_of_jax() if jax is not None else []
    if rows:
        page.paragraph("Parts of JAX that jaxscope reads")
    for r in rows:
        reason = "" if r.available else f"cannot be recorded: {r.gives}. Reason: {r.reason}"
        page.fact(str(r.name), reason or str(r.gives), bool(r.available))
    probed, failure = _probed() if args.probe and jax is not None else ([], None)
    if probed or failure:
        page.paragraph("Log fields of a recorded program")
    for field in probed:
        read_from = f"; jaxscope reads it from {', '.join(field.needs)}" if field.needs else ""
        page.fact(field.name, "filled" if field.filled else f"not filled{read_from}", field.filled)
    if failure is not None:
        page.fact("probe", failure, False)
    if as_json:
        parts = [
            {"name": str(r.name), "gives": str(r.gives), "available": bool(r.available), "reason": r.reason}
            for r in rows
        ]
        document: dict[str, Any] = {"ok": page.well, "facts": general, "parts": parts}
        if args.probe:
            document["fields"] = [f._asdict() for f in probed]
            document["probe_error"] = failure
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    page.paragraph(
        "Everything can be recorded. Record a program: jaxscope run train.py"
        if page.well
        else "Programs can be recorded, without the parts of JAX marked missing above."
    )
    return 0 if page.well else 1


def _general(page: _Page) -> str | None:
    """Print on ``page`` versions, the system, the run directory, what the optional extensions can record, and
    the compilers for targets (accelerators of other machines). Return the version of JAX; None if JAX cannot
    be imported."""
    from jaxscope.present.text import missing_accelerators

    page.fact("jaxscope", __version__)
    page.fact("python", f"{platform.python_version()}, {sys.executable}")
    page.fact("system", f"{platform.system()} {platform.release()}, {platform.machine()}")
    jax, why = _version("jax")
    page.fact("jax", jax or why, jax is not None)
    jaxlib, why = _version("jaxlib")
    page.fact("jaxlib", jaxlib or why, jaxlib is not None)
    warning = importlib.import_module("jaxscope.jax_internals").untested(jax) if jax is not None else None
    if warning:
        page.fact("", warning)
    built = importlib.import_module("jaxscope.capture.warm").IN_C
    without_c = "jaxscope was installed without a C compiler"
    page.fact("watched calls", "counted in C" if built else f"counted in Python: {without_c}")
    sampled = importlib.import_module("jaxscope.capture.line_times").sampler() is not None
    page.fact("times of lines", "measured" if sampled else f"not measured: {without_c}")
    home = store.runs_home()
    problem = unwritable(home)
    page.fact("run directory", str(home) if problem is None else f"{home}: {problem}", problem is None)
    for platform_, name in (("tpu", "TPU compiler"), ("cuda", "GPU compiler")):
        lacking, found = _compiler(platform_)
        page.fact(name, found or f"{lacking} (needed for --target only)")
    tried = plugins_without_device(os.environ) if jax is not None else []
    if tried:
        page.fact("", missing_accelerators(tried))
    return jax


def plugins_without_device(environ: Mapping[str, str]) -> list[str]:
    """Return the names of installed accelerator plugins of JAX, such as ``libtpu``, for which this machine
    has no device file. Empty if ``environ`` sets ``JAX_PLATFORMS``. This function does not initialize any
    device."""
    # JAX tries each of these plugins at its start, unless JAX_PLATFORMS is set, before it uses the CPU.
    if environ.get("JAX_PLATFORMS"):
        return []
    interning = importlib.import_module("jaxscope.capture.calls.interning")
    return [
        name
        for name in interning.ACCELERATORS
        if importlib.util.find_spec(name) is not None
        and not any(
            found for pattern in DEVICE_FILES[name == "libtpu"] for found in Path("/dev").glob(pattern)
        )
    ]


def unwritable(home: Path) -> str | None:
    """Return why no run can be created under ``home``, as text; None if one can be created. This leaves no
    file behind."""
    place = home
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place):
            return None
    except OSError as e:
        return e.strerror or str(e)


def _version(package: str) -> tuple[str | None, str]:
    """Import ``package``. Return (its version, ""), or (None, the reason) if it cannot be imported."""
    try:
        module = importlib.import_module(package)
    except Exception as e:  # a broken installation can raise anything
        return None, f"cannot be imported: {type(e).__name__}: {e}"
    return str(getattr(module, "__version__", None) or importlib.metadata.version(package)), ""


def _compiler(platform: str) -> tuple[str | None, str | None]:
    """Look for the compiler for accelerators of ``platform`` (``tpu`` or ``cuda``). Return (None, a short
    description of it), or (what is missing, None)."""
    client = importlib.import_module("jaxscope.targets.client")
    lacking = client.missing(platform)
    if lacking is not None:
        return lacking.sentence, None
    return None, client.compiler_version(platform) or "there"


def _probed() -> tuple[list[Field], str | None]:
    """Record a small program (``--probe``). Return (the log fields that it is to fill, each with
    whether it did, None). If the program failed, return ([], an error message)."""
    try:
        return probe.probe(), None
    except JaxscopeError as e:
        return [], e.message


def _parts_of_jax() -> list[Any]:
    return list(importlib.import_module("jaxscope.jax_internals").table())
