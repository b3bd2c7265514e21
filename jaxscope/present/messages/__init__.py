"""The templates of all messages, by slug (the name of a template). There is one file for each family of
rules.

A template has fields in braces. The types of ``schema.messages`` define how the value of a field is written.
An optional part of a sentence is a field, too: its value is a message with its own template, which includes
the punctuation, or None if the part is left out.
"""

from __future__ import annotations

from jaxscope.present.messages import (
    check,
    contexts,
    donation,
    memory,
    programs,
    ranks,
    recompiles,
    shardings,
    targets,
    transfers,
)

FAMILIES = {
    "contexts": contexts.TEMPLATES,
    "recompiles": recompiles.TEMPLATES,
    "programs": programs.TEMPLATES,
    "memory": memory.TEMPLATES,
    "shardings": shardings.TEMPLATES,
    "targets": targets.TEMPLATES,
    "donation": donation.TEMPLATES,
    "transfers": transfers.TEMPLATES,
    "ranks": ranks.TEMPLATES,
    "check": check.TEMPLATES,
}
TEMPLATES = {slug: template for family in FAMILIES.values() for slug, template in family.items()}
SHORT = recompiles.SHORT
