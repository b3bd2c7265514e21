"""Rules JX110 to JX113: functions that recompile because the function object or an option of jit changed,
because the caches were cleared, or because a program that was compiled ahead of time is not called."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from jaxscope.analysis import line_names
from jaxscope.analysis.jit_decorators import JITS
from jaxscope.analysis.syntax import Definition
from jaxscope.model.call_places import object_for_each_place
from jaxscope.rules.recompiles import Group, recompile_rule
from jaxscope.schema.file_owner import STANDING, Standing
from jaxscope.schema.findings import NOTE, WARNING, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.libraries import transformation
from jaxscope.schema.messages import Message, Names, message

CLEARING = frozenset({"clear_caches", "clear_cache"})
DIFFERENTIATE = frozenset({"jax.grad", "jax.value_and_grad", "jax.jacfwd", "jax.jacrev", "jax.hessian"})
LINES = 3  # the most lines that clear the caches to name


@recompile_rule("JX110", "new-function-object", WARNING, "new_function")
def new_function_object(group: Group) -> Fix | None:
    """Return the advice for calls that recompiled because the function object is new. Return None if each of
    a few lines has its own object, or a cache keeps all."""
    seen = group.function.seen
    if object_for_each_place(group.function) or _in_cache(group):
        return None  # for example the updates that a factory made for two optimizers, each with its own line
    form = "partial" if "functools.partial" in seen.wrappers and seen.form == "partial" else seen.form
    wrapper = transformation(seen.wrappers[0]) if seen.wrappers else ""
    maker = seen.qualname.rpartition(".<locals>.")[0]
    site = group.calls[-1].site
    if form == "method":
        owner = seen.qualname.rpartition(".")[0].rpartition(".")[2] or "object"
        if seen.file is not None and STANDING(seen.file) != Standing.USER:  # its __init__ is the library's
            words = message("fix-jit-library-method-once", method=seen.name, owner=owner, name=owner.lower())
        else:
            words = message("fix-jit-method-once", jitted=_jitted_method(group), owner=owner)
    elif form == "partial":
        words = message("fix-jit-partial-once", differentiated=differentiated(seen.wrappers))
    elif maker and site is not None and maker.rpartition(".")[2] not in site.function:
        words = _call_once(group, maker.replace(".<locals>", ""))
    elif form == "lambda":
        words = message("fix-define-at-module-level")
    elif seen.wrappers and wrapper.rpartition(".")[2] in JITS:
        words = message("fix-define-and-jit-once", wrapper=wrapper)
    elif seen.wrappers and "<locals>" in seen.qualname:
        words = message("fix-define-and-wrap-once", wrapper=wrapper)
    elif seen.wrappers:
        words = message("fix-wrap-once", wrapper=wrapper)
    else:
        words = message("fix-define-once")
    return Fix(words, "create_once", {"form": form})


def _jitted_method(group: Group) -> str:
    """Return the method of ``group`` with all that was applied to it, under jit, as source:
    ``jax.jit(jax.grad(self.loss))``."""
    jitted, outer = f"self.{group.function.seen.name}", "jax.jit"
    for wrapper in map(transformation, reversed(group.function.seen.wrappers)):
        if wrapper.rpartition(".")[2] in JITS:
            outer = wrapper
        else:
            jitted = f"{wrapper}({jitted})"
    return f"{outer}({jitted})"


def differentiated(wrappers: Sequence[str]) -> Message | None:
    """Return what to change in the call of ``jax.grad`` (or the like) if a function gets more arguments. None
    if no such transformation is in ``wrappers``, the names of what was applied to the function."""
    found = next((w for w in map(transformation, wrappers) if w in DIFFERENTIATE), None)
    return message("count-for-argnums", transformation=found) if found is not None else None


def _maker(group: Group) -> Definition | None:
    """Return the definition of the function whose body defines the recompiled function of ``group``; None if
    unknown."""
    seen = group.function.seen
    name = seen.qualname.rpartition(".<locals>.")[0]
    return line_names.function(group.source(seen.file), name) if name and seen.file is not None else None


def _in_cache(group: Group) -> bool:
    """Return whether the recompiled function of ``group`` is defined in a function under
    ``functools.lru_cache`` whose cache has room for all function objects that were compiled."""
    made = _maker(group)
    size = line_names.cache_size(made) if made is not None else None
    return size is not None and len(group.calls) < size


def _call_once(group: Group, maker: str) -> Message:
    """Return the advice for the function of ``group``, which each call of the function ``maker`` (a name)
    defines again."""
    made, line = _maker(group), group.function.seen.line
    owner, _, name = maker.rpartition(".")
    owner = owner.rpartition(".")[2]
    unset = made is not None and line is not None and line_names.defines_if_unset(made, line)
    if owner and (unset or name == "__init__"):
        return message("fix-define-for-all-objects", maker=maker, owner=owner)
    size = line_names.cache_size(made) if made is not None else None
    if size is not None:
        return message("fix-larger-cache", maker=maker, size=int(size))
    if made is not None and any(a.arg != "self" for a in ast.walk(made.args) if isinstance(a, ast.arg)):
        return message("fix-call-maker-for-each", maker=maker)
    return message("fix-call-maker-once", maker=maker)


@recompile_rule("JX111", "changing-options", NOTE, "options")
def changing_options(group: Group) -> Fix:
    return Fix(message("fix-one-set-of-options"), "same_options", {"option": group.cause.path})


@recompile_rule("JX112", "cleared-caches", WARNING, "cleared")
def cleared_caches(group: Group) -> Fix:
    return not_to_clear(group.source, [c.site.file for c in group.compilations if c.site is not None])


def not_to_clear(source: Callable[[str], str | None], files: Sequence[str]) -> Fix:
    """Return the advice not to clear JAX's caches, with the lines of ``files`` that do. ``source`` returns
    the text of a file."""
    named = clearing_lines(source, files)
    library = message("cleared-elsewhere") if named is None else None
    return Fix(message("fix-do-not-clear", lines=named, library=library), "do_not_clear")


def clearing_lines(source: Callable[[str], str | None], files: Sequence[str]) -> Message | None:
    """Return a clause with the lines of ``files`` that clear JAX's caches; None if there are none. ``source``
    returns the text of a file."""
    lines = [
        Frame(f, n, "") for f in dict.fromkeys(files) for n in line_names.lines_calling(source(f), CLEARING)
    ]
    return message("called-at-lines", lines=Names(tuple(lines), LINES, "lines")) if lines else None


@recompile_rule("JX113", "unused-ahead-of-time", WARNING, "aot")
def unused_ahead_of_time(group: Group) -> Fix | None:
    """Return the advice to call the compiled object; None if all calls are compilations ahead of time."""
    if all(c.entry == "aot" for c in group.compilations):
        return None
    return Fix(message("fix-call-compiled"), "call_compiled")
