"""JX121: settings of JAX that are part of the cache key."""

from __future__ import annotations

from jaxscope.rules.recompiles import Group, recompile_rule
from jaxscope.schema.findings import WARNING


@recompile_rule("JX121", "changing-setting", WARNING, "config")
def changing_setting(group: Group) -> str:
    return f"set {group.cause.path} once, before the first call"
