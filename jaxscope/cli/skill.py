"""``jaxscope skill``: print a SKILL.md, a page for coding agents on how to use jaxscope."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from jaxscope.cli.output import deliver

TEXT = Path(__file__).with_name("skill.md")
DESCRIPTION = """\
Print a SKILL.md: a page for a coding agent about the commands to use and what their JSON contains.
"""
EXAMPLES = """\
examples:
  jaxscope skill                                      print it
  jaxscope skill -o .claude/skills/jaxscope/SKILL.md  put it where an agent looks (make the directory first)
"""


def add_parser(subparsers: Any) -> None:
    """Add the command ``jaxscope skill`` and its options to ``subparsers`` (of argparse)."""
    parser = subparsers.add_parser(
        "skill", help="a page for a coding agent", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to FILE instead of stdout")
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Run ``jaxscope skill``: print the page, or write it to the file of ``--output``. Return 0."""
    deliver(TEXT.read_text("utf-8"), args.output)
    return 0
