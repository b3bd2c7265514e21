"""JX110 to JX113: another function object, other options, caches emptied, an executable not used."""

from __future__ import annotations

from jaxscope.rules.recompiles import Group, recompile_rule
from jaxscope.schema.findings import NOTE, WARNING

TAKEN = "what it takes from around it becomes an argument"


@recompile_rule("JX110", "new-function-object", WARNING, "new_function")
def new_function_object(group: Group) -> str:
    seen = group.function.seen
    form = "partial" if "functools.partial" in seen.wrappers and seen.form == "partial" else seen.form
    if form == "method":
        return (
            "jit the bound method once, in __init__, and keep it: self.step = jax.jit(self.step); and "
            "make its object once,"
            " before the loop"
        )
    if form == "partial":
        return "make the partial and its jit once, before the loop, or pass the bound value as an argument"
    if form == "lambda":
        return f"define the function once, at module level, and jit it there; {TAKEN}"
    if seen.wrappers and "<locals>" in seen.qualname:
        outside = f"apply {seen.wrappers[0]} to it, once, outside what defines it anew"
        return f"define the function, and {outside}; {TAKEN}"
    if seen.wrappers:
        return f"apply {seen.wrappers[0]} once, before the loop, and keep what it returns"
    return f"define and jit the function once, outside the function or loop that defines it anew; {TAKEN}"


@recompile_rule("JX111", "changing-options", NOTE, "options")
def changing_options(group: Group) -> str:
    return "jit it once with one set of options, and call that everywhere"


@recompile_rule("JX112", "cleared-caches", WARNING, "cleared")
def cleared_caches(group: Group) -> str:
    return "do not call jax.clear_caches() or .clear_cache() between calls that are to be fast"


@recompile_rule("JX113", "unused-ahead-of-time", WARNING, "aot")
def unused_ahead_of_time(group: Group) -> str | None:
    if all(c.entry == "aot" for c in group.compilations):
        return None
    return "call the object that .lower(...).compile() returned, or lower with the arguments of the real call"
