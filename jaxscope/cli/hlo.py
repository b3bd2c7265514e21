"""``jaxscope hlo FILE``: analyze the text of a compiled program from any source; no run is needed."""

from __future__ import annotations

import argparse
import gzip
import io
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxscope.analysis.programs import MAX_ANALYSED
from jaxscope.cli.output import console_for, deliver
from jaxscope.errors import JaxscopeError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

DESCRIPTION = """\
Print what is in a program that XLA produced: fusions, collectives over the mesh axes, loops, memory,
donation. FILE is an HLO text, for example from `compiled.as_text()` or from an --xla_dump_to directory.
Compressed .gz files are read directly; - means stdin. With the lowered text (--stablehlo), constants, casts,
callbacks and unrolled loops are printed, too.
"""
EXAMPLES = """\
examples:
  jaxscope hlo module_0042.jit_train_step.after_optimizations.txt
  jaxscope hlo step.hlo.txt.gz --stablehlo step.mlir.gz --mesh data=4,model=2
  jaxscope hlo step.hlo.txt --format json | jq '.collectives[] | {kind, axes, bytes, executions}'
"""
MAX_BYTES, LARGEST = MAX_ANALYSED, 1 << 30


def add_parser(subparsers: Any) -> None:
    """Add the command ``jaxscope hlo`` and its options to ``subparsers`` (of argparse)."""
    parser = subparsers.add_parser(
        "hlo", help="analyze a compiled text", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument("file", metavar="FILE", help="the compiled text; - is stdin")
    parser.add_argument("--stablehlo", metavar="FILE", help="the lowered text of the same program")
    parser.add_argument(
        "--mesh",
        metavar="AXES",
        type=mesh,
        help="the mesh of the program's devices in order, e.g. data=4,model=2",
    )
    parser.add_argument("--all", action="store_true", help="show everything")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to FILE instead of stdout")
    parser.set_defaults(handler=handle)


def mesh(text: str) -> list[tuple[str, int]]:
    """Parse the axes of a mesh: ``data=4,model=2`` -> ``[("data", 4), ("model", 2)]``.

    Raises:
      argparse.ArgumentTypeError: the text has another form.
    """
    found = []
    for part in text.split(","):
        axis, mark, size = part.strip().partition("=")
        if not (axis and mark and size.isdecimal() and 0 < int(size[:9]) == int(size)):
            raise argparse.ArgumentTypeError(f"{part!r} is no axis: write data=4,model=2")
        found.append((axis, int(size)))
    return found


def handle(args: argparse.Namespace) -> int:
    """Run ``jaxscope hlo``: print the analysis of the text. Return 0.

    Raises:
      JaxscopeError: a file cannot be read, is not a compiled text, or both files are stdin.
    """
    from jaxscope.analysis.programs import Around, analyze

    if args.file == "-" and args.stablehlo == "-":
        raise UsageError("only one of the two texts can come from stdin", slug="usage")
    compiled = read(args.file, everything=args.all)
    lowered = read(args.stablehlo, everything=args.all) if args.stablehlo else None
    if not compiled.lstrip().startswith("HloModule") and compiled.lstrip().startswith(
        ("module @", "module {", "#loc")
    ):
        hint = f"jaxscope hlo COMPILED --stablehlo {args.file} reads both"
        raise UsageError(f"{args.file} is StableHLO, not compiled text", hint=hint, slug="not-hlo")
    texts = analyze(compiled, lowered, Around(mesh=args.mesh))
    if texts.hlo is None or texts.hlo.module is None:
        raise JaxscopeError(
            f"{args.file} is not a compiled text: no line begins with HloModule",
            hint="dump one with XLA_FLAGS=--xla_dump_to=DIR, or jax.jit(f).lower(x).compile().as_text()",
            slug="not-hlo",
        )
    if args.format == "json":
        import msgspec

        from jaxscope.report.json_report import dumps
        from jaxscope.report.programs import texts_json

        deliver(
            dumps({"module": texts.hlo.module, "target": None, **msgspec.structs.asdict(texts_json(texts))}),
            args.output,
        )
        return 0
    with console_for(args.output) as page:
        _print(texts, page, everything=args.all)
    return 0


def _print(texts: Any, page: Console, *, everything: bool) -> None:
    from jaxscope.model.run import Run
    from jaxscope.present.escape import escape
    from jaxscope.present.text import Places, count
    from jaxscope.report import compiled_program
    from jaxscope.report.layout import line, put

    program = texts.hlo
    on = f"  {count(program.num_partitions, 'partition')}" if program.num_partitions is not None else ""
    across = ", ".join(f"{escape(axis)}={size}" for axis, size in program.mesh or ())
    put(page, [line((escape(program.module), "bold"), on, (f"  mesh {across}" if across else "", "dim"))])
    put(page, compiled_program.section(texts, None, Places(Run()), everything=everything))
    if program.mesh is None and any(c.group_size and c.group_size > 1 for c in program.collectives):
        put(page, [line(("the mesh axes are not known: --mesh data=4,model=2 names them", "dim"), indent=2)])


def read(name: str, *, everything: bool = False) -> str:
    """Return the text of the file ``name``, decompressed if it is gzip; for ``-``, the text on stdin. At most
    MAX_BYTES bytes of text are allowed; with ``everything``, at most LARGEST.

    Raises:
      JaxscopeError: the file cannot be read, or has more text.
    """
    most = LARGEST if everything else MAX_BYTES
    raw = b""
    if name == "-":
        raw = sys.stdin.read(most + 1).encode("utf-8", "replace")
    try:
        if name != "-":
            with Path(name).open("rb") as f:  # a pipe is allowed, because the user has named it
                raw = f.read(most + 1)
        if raw[:2] == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as packed:
                raw = packed.read(most + 1)
    except (OSError, EOFError, zlib.error) as e:
        reason = e.strerror if isinstance(e, OSError) and e.strerror else str(e) or type(e).__name__
        raise JaxscopeError(f"cannot read {name}: {reason}", slug="unreadable") from e
    if len(raw) > most:
        hint = None if everything else "--all reads up to 1 GiB"
        text = f"{name} contains more than {most >> 20:,} MiB of text"
        raise JaxscopeError(text, hint=hint, slug="too-large")
    return raw.decode("utf-8", "replace")
