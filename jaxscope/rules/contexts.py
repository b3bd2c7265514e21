"""Rule JX121: functions that recompile because a setting of JAX changed (``jax_enable_x64``), which is part
of the cache key."""

from __future__ import annotations

from jaxscope.rules.recompiles import Group, recompile_rule
from jaxscope.schema.findings import WARNING, Fix
from jaxscope.schema.messages import message


@recompile_rule("JX121", "changing-setting", WARNING, "config")
def changing_setting(group: Group) -> Fix:
    name = group.cause.path
    return Fix(message("fix-set-once", setting=name or "the changed setting"), "set_once", {"setting": name})
