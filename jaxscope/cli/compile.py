"""``jaxscope compile``: compile one function for a target (an accelerator, which need not be in this
machine), given the shapes of its arguments."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import os
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jaxscope.cli import targeting
from jaxscope.cli.hlo import mesh
from jaxscope.cli.output import console_for, deliver
from jaxscope.errors import JaxscopeError, UsageError
from jaxscope.launch import command
from jaxscope.log import store
from jaxscope.log.store import RunDir

DESCRIPTION = """\
Compile one function for an accelerator you don't have. The function is traced from shapes, in this process,
on as many CPU devices as the target has; nothing is computed and no array is created. WHERE is a module or a
file, FUNCTION is a function in it, jitted or not. Targets of different sizes are compiled one after the other
and compared. The arguments (--args) are either

  dtype[shape]         f32[8,128]   bf16[4096,1024]@data,model   i32[]
                       after @, the mesh axis of each dimension; - for a
                       dimension that is not sharded
  a function's name    a function of the same module, or MODULE:FUNCTION; it
                       returns the arguments as a tuple of ShapeDtypeStructs

The result is recorded like a run: report, view and dump show it. The exit code is 1 if the
program does not fit into the memory of the target, or does not compile.
"""
EXAMPLES = """\
examples:
  jaxscope compile train.py:train_step --target v5p:8x8x8 --args train_shapes
  jaxscope compile package.model:loss --target v5e:4x4 --mesh data=4,model=4 \\
      --args 'bf16[1024,512]@-,model' 'f32[64,1024]@data'
  jaxscope compile train.py:step --target v5e:4x4 --target v6e:4x4 --args shapes --format json
  jaxscope compile --rest latest
"""
DTYPES = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "bool": "bool",
    "c64": "complex64",
    "c128": "complex128",
}
_SHAPE = re.compile(r"([a-z0-9]+)\[((?:\d{1,15}(?:,\d{1,15})*)?)\](?:@(.+))?")


def add_parser(subparsers: Any) -> None:
    """Add the command ``jaxscope compile`` and its options to ``subparsers`` (of argparse)."""
    parser = subparsers.add_parser(
        "compile", help="compile for an accelerator you don't have", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument(
        "function", metavar="WHERE:FUNCTION", nargs="?", help="train.py:step, or package.train:step"
    )
    parser.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="TARGET",
        help="v5e:4x4, 2*v5p:4x4x4, h100:8 (repeatable; all: jaxscope targets)",
    )
    parser.add_argument(
        "--rest",
        nargs="?",
        const="latest",
        metavar="RUN",
        help="compile only the programs of RUN that are missing because the compiler's process ended"
        " (default: latest)",
    )
    parser.add_argument(
        "--args", nargs="*", default=[], metavar="ARG", help="the arguments, as described above"
    )
    parser.add_argument(
        "--mesh",
        type=mesh,
        metavar="AXES",
        help="the mesh that the axes after @ in --args refer to, for example data=4,model=4",
    )
    parser.add_argument("--out", metavar="DIR", type=Path, help="record in this directory")
    parser.add_argument("--all", action="store_true", help="show everything")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to FILE instead of stdout")
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Run ``jaxscope compile``: compile the function (with ``--rest``, the remaining programs of a run) and
    print the result. Return 1 if a program does not compile or does not fit into memory, or if the user's
    code raises an exception; else 0. For targets of several sizes, see ``_in_processes``.

    Raises:
      JaxscopeError: the options are invalid, or the compiler for a target is not installed.
    """
    if args.rest is not None:
        from jaxscope.cli import resume

        return resume.handle(args.rest)
    if args.function is None or not args.target:
        what = "--target" if args.function is not None else "a function"
        raise UsageError(
            f"compile: {what} is missing",
            hint="for example: jaxscope compile train.py:step --target v5e:4x4 --args shapes",
            slug="usage",
        )
    groups = targeting.grouped(args.target)
    specs = [_spec(word) for word in args.args]
    if len(groups) > 1:
        return _in_processes(args, groups)
    targets = groups[0]
    environ: Any = os.environ  # no dict, but it is used like one
    targeting.force(environ, targets)
    try:
        path = _compiled(args, targets, specs)
    except (JaxscopeError, OSError):
        raise
    except Exception:  # of the user's module or function, as Python itself shows it
        traceback.print_exc()
        return 1
    return _deliver(args, RunDir(path))


def _compiled(args: argparse.Namespace, targets: Sequence[Any], specs: Sequence[Any]) -> Path | str:
    """Import the user's module and compile its function for each of ``targets``. Return the path of the run
    directory in which this is recorded.

    Args:
      targets: the accelerators to compile for; all have the same number of devices.
      specs: the words of ``--args``, each parsed by ``_spec``: a shape, or the name of a function that makes
        arguments.
    """
    where = args.function.rpartition(":")
    sys.argv = [where[0]]  # the user's module must not see jaxscope's options
    module = _module(where[0] if where[1] else "", args.function)
    function = _find(module, where[2])
    arguments = _arguments(module, specs, args.mesh)
    _check_arguments(args.function, function, arguments)
    import jaxscope

    with jaxscope.record(args.out, name=where[2], arrays=False):
        found = [jaxscope.compile_for(t.name, function, *arguments) for t in targets]
    path: Path | str = found[0].path
    return path


def _in_processes(args: argparse.Namespace, groups: Sequence[Sequence[Any]]) -> int:
    """Run ``jaxscope compile`` once for each of ``groups``, each time in a separate process, print the
    results, and return the exit code. If a process ends with another exit code than 0 or 1, return this exit
    code at once.

    A group is a list of targets (accelerators) with the same number of devices. The run directories of later
    groups are inside that of the first one.
    """
    name = args.function.rpartition(":")[2] or "compile"
    record = RunDir(args.out or store.fresh(name))
    words = [sys.executable, *command.interpreter_flags(), "-m", "jaxscope", "compile", args.function]
    words += ["--args", *args.args] if args.args else []
    words += ["--mesh", ",".join(f"{axis}={n}" for axis, n in args.mesh)] if args.mesh else []
    worst = 0
    with tempfile.TemporaryDirectory() as aside:
        for i, targets in enumerate(groups):
            out = record.path if i == 0 else store.sub_run(record, str(targets[0].devices))
            more = ["--out", str(out), "--format", "json", "-o", str(Path(aside) / "programs.json")]
            names = [word for t in targets for word in ("--target", t.name)]
            sys.stderr.write(
                f"jaxscope: {i + 1} of {len(groups)}: on {targets[0].devices:,} devices for"
                f" {', '.join(names[1::2])}\n"
            )
            sys.stderr.flush()
            # A separate process, because the number of CPU devices is fixed when JAX starts.
            code = subprocess.run([*words, *names, *more], check=False).returncode
            if code not in (0, 1):  # an error that has been printed, and would be the same for the others
                return code if code > 0 else 128 - code
            worst = max(worst, code)
    return max(worst, _deliver(args, record))


def _deliver(args: argparse.Namespace, record: RunDir) -> int:
    """Print each program compiled in the run ``record`` and in the runs inside its directory, with a table
    that compares the targets. Return 1 if there is no program, or if one does not compile or does not fit
    into the memory of its target; else 0."""
    from jaxscope.model import target_programs
    from jaxscope.model.load import load
    from jaxscope.present.text import Places
    from jaxscope.report import comparison_table, targets, targets_section, variants
    from jaxscope.report.json_report import dumps
    from jaxscope.report.layout import put

    parts = variants.of(load(record), record)
    found = [(v.run, p) for v in parts for _, programs in target_programs.of_run(v.run) for p in programs]
    if args.format == "json":
        programs = [targets.program_json(run, p) for run, p in found]
        deliver(
            dumps({"schema": 1, "programs": programs, "comparisons": comparison_table.as_json(parts)}),
            args.output,
        )
    else:
        with console_for(args.output) as page:
            for run, p in found:
                put(page, targets.whole(run, p, Places(run), everything=args.all))
            for f, _ in variants.by_function(parts):
                put(page, targets_section.of_function(f, parts, page.width))
        sys.stderr.write(f"recorded in {record.path}\n")
    fits = [getattr(target_programs.fit(run, p), "fits", None) for run, p in found]
    return 0 if found and all(p.state == "ok" for _, p in found) and False not in fits else 1


def _spec(word: str) -> tuple[str, tuple[int, ...], list[str | None] | None] | str:
    """Parse one word of ``--args``, a shape, to (dtype, shape, mesh axes of the first dimensions):
    ``f32[8,128]@data`` -> ``("f32", (8, 128), ["data"])``. The third item is None if the word has no ``@``.
    The name of a function is returned unchanged.

    Raises:
      UsageError: the word is neither a valid shape nor a name.
    """
    match = _SHAPE.fullmatch(word.strip())
    if match is None:
        if re.fullmatch(r"[\w.]+(:[\w.]+)?", word):
            return word
        raise UsageError(
            f"{word!r} is neither a shape nor the name of a function",
            hint="write f32[8,128], or bf16[8,128]@data,-",
            slug="usage",
        )
    if match[1] not in DTYPES:
        raise UsageError(f"{match[1]!r} is not a dtype", hint=f"known: {', '.join(DTYPES)}", slug="usage")
    shape = tuple(int(n) for n in match[2].split(",") if n)
    axes = (
        None
        if match[3] is None
        else [None if a.strip() in ("-", "None", "") else a.strip() for a in match[3].split(",")]
    )
    if axes is not None and len(axes) > len(shape):
        raise UsageError(f"{word!r} has more axes than dimensions", slug="usage")
    return match[1], shape, axes


def _module(name: str, whole: str) -> Any:
    """Import and return the module ``name``, which is a file (``train.py``) or the name of a module.
    ``whole`` is the argument on the command line (``train.py:step``), for error messages.

    Raises:
      UsageError: there is no such file or module, or ``name`` is empty.
    """
    if not name:
        raise UsageError(f"{whole!r} names no module", hint="write train.py:train_step", slug="usage")
    here = str(Path.cwd())
    if name.endswith(".py"):
        path = Path(name).absolute()
        if not path.is_file():
            raise UsageError(f"there is no file {name!r}", slug="no-program")
        sys.path.insert(0, str(path.parent))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        return module
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as e:
        if e.name is not None and (name == e.name or name.startswith(f"{e.name}.")):
            raise UsageError(
                f"there is no module {name!r}", hint="a file is written train.py:step", slug="no-program"
            ) from e
        raise


def _find(module: Any, name: str) -> Callable[..., Any]:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        import difflib

        near = difflib.get_close_matches(name, [n for n in vars(module) if callable(getattr(module, n))], 3)
        hint = f"did you mean {', '.join(near)}?" if near else None
        raise UsageError(f"{module.__name__} has no function {name!r}", hint=hint, slug="no-program")
    return found  # type: ignore[no-any-return]


def _check_arguments(name: str, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
    """Check that ``function`` can be called with ``arguments``. The error message calls it ``name``
    (``train.py:step``).

    Raises:
      UsageError: the function cannot take these arguments.
    """
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as e:
        hint = (
            "--args f32[8,128] i32[]: a shape for each; or --args shapes:"
            " a function of the module that returns them"
        )
        raise UsageError(f"{name} with {len(arguments)} arguments: {e}", hint=hint, slug="usage") from e
    except ValueError:  # its signature is unknown
        pass


def _arguments(
    module: Any,
    specs: Sequence[tuple[str, tuple[int, ...], list[str | None] | None] | str],
    axes: list[tuple[str, int]] | None,
) -> list[Any]:
    """Return the arguments to trace the function with: a ``jax.ShapeDtypeStruct`` for each shape in
    ``specs``, and for each name in ``specs`` what the function of this name returns.

    Args:
      module: the module of functions whose name has no module.
      specs: the results of ``_spec``: shapes, and names of functions that return arguments, or of tuples or
        lists of arguments.
      axes: (name, size) of each axis of the mesh (``--mesh``); None: no mesh.

    Raises:
      UsageError: there is no such function, an argument needs a mesh or an axis that is missing, or the mesh
        has another number of devices than JAX.
    """
    import numpy as np

    jax: Any = importlib.import_module("jax")  # partly untyped
    grid = None
    if axes is not None:
        sizes = [n for _, n in axes]
        if int(np.prod(sizes)) != jax.device_count():
            raise UsageError(
                f"the mesh has {int(np.prod(sizes)):,} devices, but there are {jax.device_count():,}",
                slug="mesh-size",
            )
        devices = np.array(jax.devices(), dtype=object).reshape(sizes)
        grid = jax.sharding.Mesh(devices, [name for name, _ in axes])
    found: list[Any] = []
    for spec in specs:
        if isinstance(spec, str):
            other, _, name = spec.rpartition(":")
            within = _module(other, spec) if other else module
            made = getattr(within, name, None)
            if not isinstance(made, (tuple, list)):
                made = _find(within, name)()
            found += made if isinstance(made, (tuple, list)) else [made]
            continue
        dtype, shape, placed = spec
        sharding = None
        if placed is not None:
            if grid is None:
                raise UsageError(
                    "an argument with @ needs a mesh", hint="for example: --mesh data=4,model=4", slug="usage"
                )
            unknown = [a for a in placed if a is not None and a not in grid.axis_names]
            if unknown:
                raise UsageError(f"the mesh has no axis {unknown[0]!r}", slug="usage")
            sharding = jax.sharding.NamedSharding(grid, jax.sharding.PartitionSpec(*placed))
        found.append(jax.ShapeDtypeStruct(shape, jax.numpy.dtype(DTYPES[dtype]), sharding=sharding))
    return found
