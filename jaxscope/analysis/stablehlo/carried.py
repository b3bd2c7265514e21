"""Find the values that a ``while`` loop of a StableHLO text carries from iteration to iteration unchanged.

JAX passes everything that the body of a ``scan`` or ``while_loop`` reads as arguments of the body. If the
body returns an argument unchanged, this argument has its value from before the loop in all iterations.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_WHILE = re.compile(r"(?:stablehlo|mhlo)\.while\(([^()]*)\)")
_RETURN = re.compile(r"(?:stablehlo|mhlo)\.return (.*)")
_VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")
PAIR = re.compile(r"(%[\w$.-]+) = (%[\w$.-]+)(?![\w$.#-])")  # an argument of a loop, and its first value
_ARGUMENT = re.compile(r"(%[\w$.-]+) = %")


def unchanged(lines: Sequence[str]) -> dict[int, frozenset[str]]:
    """Find the arguments that each while loop leaves unchanged. Return {line number of the loop, from 1:
    names of these arguments}, such as ``{7: {"%iterArg"}}``. Loops that change all arguments are left out.
    ``lines`` are the lines of the StableHLO text."""
    found: dict[int, frozenset[str]] = {}
    loops: list[tuple[int, list[str]]] = []  # (line, arguments) of each loop whose regions were not read
    regions: list[tuple[int, list[str]] | None] = []  # the loop whose body a region is; None: another region
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if (loop := _WHILE.search(text)) is not None:
            loops.append((number, _ARGUMENT.findall(loop[1])))
        elif regions and regions[-1] is not None and (end := _RETURN.match(text)) is not None:
            at, arguments = regions[-1]
            results = _VALUE.findall(end[1].partition(" : ")[0])
            if len(results) == len(arguments):
                same = frozenset(a for a, b in zip(arguments, results, strict=True) if a == b)
                found |= {at: same} if same else {}
        if text.startswith("}") and regions:
            regions.pop()
        if text.endswith("{"):
            regions.append(loops.pop() if loops and text.endswith("do {") else None)
    return found
