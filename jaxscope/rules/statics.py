"""JX107 to JX109: values that are part of the key by their own equality."""

from __future__ import annotations

import re

from jaxscope.analysis import mutated
from jaxscope.rules.recompiles import Group, recompile_rule
from jaxscope.schema.findings import NOTE, WARNING
from jaxscope.schema.keys import Static

FEW = 2  # values of a static argument: on and off
MODES = 4  # values up to which a size or a name may be one of a few that are meant

_TYPE = re.compile(r" \(\w+\)$")

# What a value can be besides static.
NUMBER, WHOLE, FLAG, WORD, OBJECT = "number", "whole number", "flag", "word", "object"


def _static(group: Group) -> Static | None:
    key = group.compilations[-1].key
    return next((s for s in key.static if s.path == group.cause.path), None) if key is not None else None


def _kind(s: Static | None) -> str:
    """By its type: only a number can be an array, and only where Python does not decide by it."""
    name = s.type.rpartition(".")[2] if s is not None else ""
    if name in ("bool", "bool_"):
        return FLAG
    if name in ("str", "bytes", "NoneType"):
        return WORD
    if name.startswith(("float", "complex", "bfloat")):
        return NUMBER
    return WHOLE if name.startswith(("int", "uint")) else OBJECT


def _values(group: Group) -> int:
    """How many values it had, as far as these calls tell; ``10 (int)`` is 10."""
    return len({_TYPE.sub("", value) for c in group.causes for value in (c.before or "", c.after or "")})


def _many_static(group: Group) -> str:
    kind = _kind(_static(group))
    return WARNING if _values(group) > (FEW if kind == NUMBER else MODES) else NOTE


def _many_in_tree(group: Group) -> str:
    """A flag is there to be on and off."""
    return NOTE if _kind(_static(group)) == FLAG and _values(group) <= FEW else WARNING


def _ordinary(group: Group, path: str) -> str:
    """How a number becomes an ordinary argument."""
    wrappers = group.function.seen.wrappers
    equinox = next((w for w in wrappers if w.startswith("equinox.")), None)
    if equinox is not None:
        return f"pass jnp.asarray({path}): through {equinox} every Python number is static"
    names = "static_broadcasted_argnums" if "jax.pmap" in wrappers else "static_argnums/static_argnames"
    return f"pass {path} as an ordinary argument: take it out of {names}"


@recompile_rule("JX107", "changing-static-value", WARNING, "static_value", severity_of=_many_static)
def changing_static_value(group: Group) -> str | None:
    path, kind = group.cause.path or "it", _kind(_static(group))
    ordinary = _ordinary(group, path)
    if kind == WHOLE:
        ordinary = (
            f"where {path} is a size or a length it has to stay static: round it up to a few values, with a mask"
            f" for the rest; where it is only computed with, {ordinary}"
        )
    elif kind == FLAG:
        ordinary += ", and let jnp.where or jax.lax.cond decide by it"
    elif kind == WORD:
        ordinary = f"keep {path} the same from call to call"
    elif kind == OBJECT:
        ordinary = f"pass what varies in {path} as ordinary arguments, and keep the rest the same"
    if _values(group) <= FEW:
        return f"nothing, if {path} is a mode of few values: each is a program of its own; else {ordinary}"
    return ordinary


@recompile_rule("JX108", "static-identity", WARNING, "static_identity")
def static_identity(group: Group) -> str:
    cause = group.cause
    path = cause.path or "it"
    if "hashes differently" in cause.text:
        return f"make the __hash__ of {path} a function of what its __eq__ compares"
    s = _static(group)
    if s is not None and s.type == "functools.partial":
        return f"make the partial {path} once, outside the loop or at module level, and pass the same object each time"
    if "functions" in cause.text:
        return f"make {path} once, before the loop, and pass the same object each time"
    return _of_class(group, s, path)


def _of_class(group: Group, s: Static | None, path: str) -> str:
    """What to do about an object of the user's: one that the program changes cannot be a value.

    Of what it was given before a change, a program compiled for an equal object would be used after it.
    """
    name = s.type.rpartition(".")[2].partition(" ")[0] if s is not None else ""
    files = [group.function.seen.file, *(c.site.file for c in group.compilations[-1:] if c.site is not None)]
    texts = [text for file in dict.fromkeys(files) if file and (text := group.source(file)) is not None]
    changes = [found for text in texts if (found := mutated.changed(text, name)) is not None]
    method = (
        path == (group.function.seen.signature or "(").lstrip("(").partition(",")[0].partition(")")[0].strip()
    )
    if any(changes) or (not changes and method and "." in group.function.seen.qualname):
        return (
            f"jit a function that is passed what it uses of {path}, its arrays and numbers, as arguments "
            f"instead of"
            f" {path} itself" + (f": the program changes what a {name} holds" if changes else "")
        )
    if not changes:
        return (
            f"make {path} once, before the loop; or give its class an __eq__ and a __hash__ of what it holds,"
            " where that never changes"
        )
    if any(mutated.holds_itself(text, name) for text in texts):
        return (
            f"make {path} once, before the loop; or write {name} as a "
            f"@dataclasses.dataclass(frozen=True), with its fields"
            " in place of __init__, if what it holds can be hashed (no arrays)"
        )
    return (
        f"make {path} once, before the loop, or give {name} __eq__ and __hash__: "
        f"@dataclasses.dataclass(frozen=True),"
        " if what it holds can be hashed (no arrays)"
    )


@recompile_rule("JX109", "changing-tree-static", WARNING, "tree_static", severity_of=_many_in_tree)
def changing_tree_static(group: Group) -> str:
    path, kind = group.cause.path or "it", _kind(_static(group))
    if kind == FLAG:
        on_purpose = " with .train() and .eval()" if _through(group, "flax.nnx") else ""
        return (
            f"nothing, if both values of {path} are meant: each is a program of its own, set on purpose{on_purpose}"
            " and compiled before it is needed; else keep it the same from call to call"
        )
    if kind in (NUMBER, WHOLE):
        return (
            f"hold {path} as an array (a child of the node) where it is only computed with; where a Python if or a"
            " shape depends on it, keep it the same from call to call"
        )
    return f"keep {path} the same from call to call"


def _through(group: Group, library: str) -> bool:
    return any(w.startswith(library) for w in group.function.seen.wrappers)
