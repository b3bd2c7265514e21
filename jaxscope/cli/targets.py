"""``jaxscope targets``: list the accelerators to compile for, with their figures and the public pages that
state these figures."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from jaxscope.cli.output import console_for, deliver

DESCRIPTION = """\
List the accelerators that `run --target`, `compile` and `compile_for` compile for. A target is a
machine and its grid of chips: v5e:4x4, v5p:8x8x8, 2*v5e:4x4 (two slices), h100:8 (one host), h100:128x8
(128 hosts). All figures are peaks that the vendor states for one chip, not measurements; "not stated"
means that no public page has the figure.
"""
EXAMPLES = """\
examples:
  jaxscope targets
  jaxscope targets v5e --sources
  jaxscope targets --format json | jq '.machines[] | {name, memory_bytes}'
"""


def add_parser(subparsers: Any) -> None:
    """Add the command ``jaxscope targets`` and its options to ``subparsers`` (of argparse)."""
    parser = subparsers.add_parser(
        "targets", help="list the accelerators to compile for", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument("machine", nargs="?", metavar="MACHINE", help="only this one, e.g. v5e")
    parser.add_argument("--sources", action="store_true", help="also print the page that states each figure")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to FILE instead of stdout")
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Run ``jaxscope targets``: print all accelerators, or only the one on the command line. Return 0.

    Raises:
      UsageError: there is no accelerator with this name.
    """
    from jaxscope.analysis import machines
    from jaxscope.errors import UsageError

    chosen = list(machines.MACHINES.values())
    if args.machine is not None:
        name = args.machine.strip().lower().partition(":")[0]
        if name not in machines.MACHINES:
            found = machines.suggestions(args.machine, 1)
            hint = f"did you mean {found[0].partition(':')[0]}? " if found else ""
            raise UsageError(
                f"there is no machine {args.machine[:60]!r}",
                hint=f"{hint}known: {', '.join(machines.MACHINES)}",
                slug="no-such-target",
            )
        chosen = [machines.MACHINES[name]]
    if args.format == "json":
        from jaxscope.report.json_report import dumps
        from jaxscope.report.machines import machine_json

        deliver(dumps({"schema": 1, "machines": [machine_json(m) for m in chosen]}), args.output)
        return 0
    from jaxscope.report.layout import put
    from jaxscope.report.machines import machine_lines

    with console_for(args.output) as page:
        put(page, machine_lines(chosen, sources=args.sources))
    return 0
