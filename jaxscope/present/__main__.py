"""``python -m jaxscope.present [WORD ...]``: print the templates of all messages, for reading.

With words, it prints only the templates that contain all of them. With the code of a rule (``JX506``), it
prints only the templates that the file of this rule uses.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import jaxscope
from jaxscope.present.messages import FAMILIES, SHORT
from jaxscope.rules import registry


def lines(words: Sequence[str] = ()) -> Iterator[str]:
    """Yield the lines to print: each family of message templates. Those of a family are sorted by slug (the
    name of a template). If a template has a short form, it is on the next line.

    Args:
      words: which templates to print; empty: all. The code of a rule (``JX506``) selects the templates that
        the file of the rule uses. Any other word selects the templates that have it in their slug or text.
        Only templates that all words select are printed.
    """
    widest = max(len(slug) for family in FAMILIES.values() for slug in family)
    rules = registry.rules()
    used = [_source(word) for word in words if word in rules]
    words = [word for word in words if word not in rules]
    for name, family in FAMILIES.items():
        shown = {
            slug: template
            for slug, template in sorted(family.items())
            if all(word in slug or word in template for word in words)
            and all(f'"{slug}"' in source for source in used)
        }
        if not shown:
            continue
        yield f"{name} ({len(shown)} messages)"
        for slug, template in shown.items():
            yield f"  {slug:<{widest}}  {template}"
            if slug in SHORT:
                yield f"  {'in short':>{widest}}  {SHORT[slug]}"


def _source(code: str) -> str:
    """Return the source text of the file that defines the rule with this ``code`` (``JX506``). If no file has
    a decorator with the code, return the texts of all files that name the code, joined."""
    files = [path.read_text() for path in sorted(Path(jaxscope.__file__).parent.rglob("*.py"))]
    decorator = re.compile(rf'(?m)^@\w*rule\(\s*"{code}"')
    found = [text for text in files if decorator.search(text)]
    return "\n".join(found or [text for text in files if f'"{code}"' in text])


if __name__ == "__main__":
    sys.stdout.write("".join(f"{line}\n" for line in lines(sys.argv[1:])))
