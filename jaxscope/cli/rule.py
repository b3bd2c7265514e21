"""``jaxscope rule``: explain a finding; the text is the rule's own docstring, and its examples are tested."""

from __future__ import annotations

import argparse
from typing import Any

from jaxscope.cli.output import deliver
from jaxscope.errors import UsageError

DESCRIPTION = """\
What a rule looks for, why that is bad, a program that has the problem and one that has not.
"""
EXAMPLES = """\
examples:
  jaxscope rule                 all rules, one line each
  jaxscope rule JX101           explain one, by code or by name
  jaxscope rule --all           explain all of them
"""


def add_parser(subparsers: Any) -> None:
    """Add ``rule``."""
    parser = subparsers.add_parser("rule", help="explain a finding", description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("rule", nargs="?", metavar="RULE", help="a code (JX101) or a name (changing-shape)")
    parser.add_argument("--all", action="store_true", help="explain every rule")
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Print it."""
    from jaxscope.rules import registry

    if args.rule and args.all:
        raise UsageError("give a rule or --all, not both", slug="usage")
    rules = registry.rules()
    if args.rule:
        chosen = [registry.find(args.rule)]
    elif args.all:
        chosen = list(rules.values())
    else:
        lines = [f"{r.code}  {r.name:<24} {r.severity:<8} {r.summary}" for r in rules.values()]
        deliver("\n".join([*lines, "", "jaxscope rule JX101 explains one."]) + "\n", None)
        return 0
    pages = [f"# {r.code} {r.name} ({r.severity})\n\n{r.doc}\n" for r in chosen]
    deliver("\n".join(pages), None)
    return 0
