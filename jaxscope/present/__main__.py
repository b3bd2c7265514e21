"""``python -m jaxscope.present [WORD ...]``: print the templates of all messages, for reading.

With words, only templates that contain them; with the code of a rule (``JX506``), those that its module uses.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence

from jaxscope.present.messages import FAMILIES, SHORT
from jaxscope.rules import registry


def lines(words: Sequence[str] = ()) -> Iterator[str]:
    """Yield the lines to print: the templates of all messages by slug, in families, with the short form of a
    template below it. ``words`` select the templates to print: the module of each rule among the words
    (``JX506``) uses the template, and its slug or its text contains each other word."""
    widest = max(len(slug) for family in FAMILIES.values() for slug in family)
    rules = registry.rules()
    used = [inspect.getsource(sys.modules[rules[word].check.__module__]) for word in words if word in rules]
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


if __name__ == "__main__":
    sys.stdout.write("".join(f"{line}\n" for line in lines(sys.argv[1:])))
