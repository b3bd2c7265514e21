"""The templates of all messages, by slug: one file a family of rules.

A template names its fields in braces; the types of ``schema.messages`` say how each is written. A part that
may be missing is a field of its own, which is then None, with the punctuation that goes with it in its
template.
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
