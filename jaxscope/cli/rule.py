"""``jaxscope rule``: explain a kind of finding (a rule, such as JX101). It prints the rule's page, whose
examples are tested."""

from __future__ import annotations

import argparse
import sys
import textwrap
from typing import TYPE_CHECKING, Any

from jaxscope.cli.output import deliver
from jaxscope.errors import UsageError

if TYPE_CHECKING:
    from jaxscope.rules.registry import Rule

BESIDE = 72  # in a terminal with at least as many columns, the summary of a rule is printed beside its name
DESCRIPTION = """\
Print a rule's page: what it finds, why that is bad, a program that has the problem and one that does not.
"""
EXAMPLES = """\
examples:
  jaxscope rule                 all rules, one line each
  jaxscope rule JX101           explain one, by code or by name
  jaxscope rule --all           explain all of them
"""


def add_parser(subparsers: Any) -> None:
    """Add the command ``jaxscope rule`` and its options to ``subparsers`` (of argparse)."""
    parser = subparsers.add_parser("rule", help="explain a finding", description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("rule", nargs="?", metavar="RULE", help="a code (JX101) or a name (changing-shape)")
    parser.add_argument("--all", action="store_true", help="explain every rule")
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Run ``jaxscope rule``: print the page of one rule, the pages of all rules, or a list of the rules.
    Return 0.

    Raises:
      UsageError: there is no such rule, or both a rule and ``--all`` are given.
    """
    from jaxscope.rules import registry

    if args.rule and args.all:
        raise UsageError("give a rule or --all, not both", slug="usage")
    rules = registry.rules()
    if args.rule:
        chosen = [registry.find(args.rule)]
    elif args.all:
        chosen = list(rules.values())
    else:
        from jaxscope.report.console import terminal_width

        lines = [line for r in rules.values() for line in listed(r, terminal_width(sys.stdout))]
        deliver("\n".join([*lines, "", "jaxscope rule JX101 explains one."]) + "\n", None)
        return 0
    pages = [f"# {r.code} {r.name} ({r.severity})\n\n{r.doc}\n" for r in chosen]
    deliver("\n".join(pages), None)
    return 0


def listed(rule: Rule, width: int | None) -> list[str]:
    """Return the lines for one rule in the list of rules: code, name, severity and summary. The summary is
    wrapped to ``width`` terminal columns; None: it is not wrapped."""
    head = f"{rule.code}  {rule.name:<24} {rule.severity:<8} "
    if width is None:
        return [head + rule.summary]
    beside = width >= BESIDE
    margin = " " * (len(head) if beside else 7)
    lines = textwrap.wrap(
        rule.summary,
        width,
        initial_indent=head if beside else margin,
        subsequent_indent=margin,
        break_on_hyphens=False,
    )
    return lines if beside else [head.rstrip(), *lines]
