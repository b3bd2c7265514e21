"""The templates of all messages, by slug; there is one file for each family of rules.

A template has fields in braces, and the types of ``schema.messages`` define how a value is written. A part of
a sentence that may be missing is a field with a template of its own, which includes the punctuation. If the
part is missing, the field is None.
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
