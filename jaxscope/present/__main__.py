"""``python -m jaxscope.present``: all templates side by side by slug, for reading; with a word, those that
contain it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from jaxscope.present.messages import FAMILIES, SHORT


def lines(words: Sequence[str] = ()) -> Iterator[str]:
    """Yield the templates of each family, short forms below; ``words`` select by slug or text."""
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
