"""``python -m jaxscope.present [WORD ...]``: print the templates of all messages, for reading.

With words, only templates that contain them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from jaxscope.present.messages import FAMILIES, SHORT


def lines(words: Sequence[str] = ()) -> Iterator[str]:
    """Yield the lines to print: the templates of all messages by slug, in families, with the short form of a
    template below it. ``words`` select the templates whose slug or text contains all of them."""
    widest = max(len(slug) for family in FAMILIES.values() for slug in family)
    for name, family in FAMILIES.items():
        shown = {
            slug: template
            for slug, template in sorted(family.items())
            if all(word in slug or word in template for word in words)
        }
        if not shown:
            continue
        yield f"{name} ({len(shown)} messages)"
        for slug, template in shown.items():
            yield f"  {slug:<{widest}}  {template}"
            if slug in SHORT:
                yield f"  {'in short':>{widest}}  {SHORT[slug]}"


if __name__ == "__main__":
    sys.stdout.write("".join(f"{line}\n" for line in lines(sys.argv[1:])))
