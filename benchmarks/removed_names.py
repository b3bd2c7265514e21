"""Compare the table of names that JAX removed with JAX's changelog.

    python benchmarks/removed_names.py CHANGELOG.md

The file is CHANGELOG.md of the repository jax-ml/jax. Each name must be in the section of the release that the
table gives; one that the table says is not in the changelog must not be there as it is written in the table.
Prints each entry that differs; the exit code is 1 if there is one.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from jaxscope.analysis.removed_names import ARGUMENTS, CHANGELOG, NAMES, NEVER, WITH_MESH

HEADING = re.compile(r"^## (?:jax|jaxlib) v?(\d[\w.]*)", re.IGNORECASE | re.MULTILINE)


def sections(text: str) -> dict[str, str]:
    """Return the text about each release, of jax and of jaxlib together."""
    parts = HEADING.split(text)
    found: dict[str, str] = {}
    for release, section in zip(parts[1::2], parts[2::2], strict=True):
        found[release] = found.get(release, "") + section
    return found


def wrong(text: str) -> list[str]:
    """Return the entries that the changelog ``text`` does not bear out, each with the reason."""
    releases = sections(text)
    entries = {name: (name.rstrip("()").rpartition(".")[2], version) for name, (_, version) in NAMES.items()}
    entries |= {f"{f}({argument}=)": (argument, version) for (f, argument), (_, version) in ARGUMENTS.items()}
    found = []
    for name, (word, version) in entries.items():
        release = CHANGELOG.get(name, None if version == NEVER else version)
        if release is None:
            found += [f"{name}: the changelog has it"] if re.search(rf"{re.escape(name)}\b", text) else []
        elif not re.search(rf"\b{re.escape(word)}\b", releases.get(release, "")):
            found.append(f"{name}: not in the section of {release}")
    if WITH_MESH.name not in releases.get(WITH_MESH.version, ""):
        found.append(f"{WITH_MESH.name} not in the section of {WITH_MESH.version}")
    return found


if __name__ == "__main__":
    lines = wrong(Path(sys.argv[1]).read_text())
    print("\n".join(lines) or f"{len(NAMES) + len(ARGUMENTS)} entries are as the changelog has them")
    raise SystemExit(1 if lines else 0)
