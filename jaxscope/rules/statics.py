"""Rules JX107 to JX109: functions that recompile because of a value that is no array, such as a static
argument. Such a value is part of the cache key, and JAX compares it with ``==`` and ``hash``."""

from __future__ import annotations

import ast
import re

from jaxscope.analysis import line_names, loop_calls, mutation
from jaxscope.analysis.syntax import expression
from jaxscope.model.call_places import static_for_each_place
from jaxscope.rules.recompiles import UNNAMED, Group, recompile_rule
from jaxscope.schema.causes import FUNCTION, PARTS, UNSTABLE_HASH, StaticDetail, StaticValue
from jaxscope.schema.file_owner import STANDING, Standing
from jaxscope.schema.findings import NOTE, WARNING, Fix
from jaxscope.schema.keys import Frame, Static
from jaxscope.schema.messages import Message, Names, message

FEW = 2  # values that a static argument may have without a finding, such as on and off
MODES = 4  # with at most this many values, a size or a name may be a mode, so that the finding is a note

# The kinds of values of a static argument; the advice depends on them.
NUMBER, WHOLE, FLAG, WORD, OBJECT = "number", "whole number", "flag", "word", "object"
_ENUM = re.compile(r"<[\w.]+: .+>")  # <Loss.MSE: 'mse'>
_PLACE = re.compile(r" at ([^<>]+):(\d+)>$")  # in older logs: <function loss at /home/me/train.py:12>
_DIGITS = re.compile(r"\d+")


def _static(group: Group) -> Static | None:
    """Return the static argument that made the latest call in ``group`` recompile; None if unknown."""
    key = group.calls[-1].key
    return next((s for s in key.static if s.path == group.cause.path), None) if key is not None else None


def _kind(s: Static | None) -> str:
    """Return the kind of the value of the static argument ``s``, on which the advice depends: NUMBER (a float
    or a complex number), WHOLE (an int), FLAG (a bool), WORD (a str, bytes or None) or OBJECT (anything else,
    or ``s`` is None: unknown)."""
    name = s.type.rpartition(".")[2] if s is not None else ""
    if name in ("bool", "bool_"):
        return FLAG
    if name in ("str", "bytes", "NoneType"):
        return WORD
    if name.startswith(("float", "complex", "bfloat")):
        return NUMBER
    return WHOLE if name.startswith(("int", "uint")) else OBJECT


def _kind_of(group: Group) -> str:
    """Return the kind of the static argument that made ``group`` recompile (see ``_kind``), but WORD for an
    enum and for an object in which only names and flags change."""
    kind = _kind(_static(group))
    return WORD if kind == OBJECT and _only_names_change(group) else kind


def _only_names_change(group: Group) -> bool:
    """Return whether the values of the static argument that made ``group`` recompile are members of an enum,
    or differ only in fields that are strings, bools or None: ``Config(loss='mse', width=64)``,
    ``Config(loss='mae', width=64)``. The text of the values decides; False if it is not Python code with such
    fields."""
    texts = [v.repr for c in group.causes for v in (c.before, c.after) if isinstance(v, StaticValue)]
    if texts and all(_ENUM.fullmatch(text) for text in texts):
        return True
    parsed = [expression(text) for text in dict.fromkeys(texts)]
    calls = [node for node in parsed if isinstance(node, ast.Call) and not node.args]
    if len(calls) < len(parsed) or len({ast.dump(call.func) for call in calls}) != 1:
        return False
    fields: dict[str, dict[str, ast.expr]] = {}
    for call in calls:
        for k in call.keywords:
            fields.setdefault(k.arg or "", {})[ast.dump(k.value)] = k.value
    changing = [value for values in fields.values() if len(values) > 1 for value in values.values()]
    return bool(changing) and all(
        isinstance(v, ast.Constant) and isinstance(v.value, (str, bool, type(None))) for v in changing
    )


def _modes(group: Group) -> bool:
    """Return whether the static argument that made the calls in ``group`` recompile has so few values that
    they look like modes (``train``, ``eval``), each of which needs its own program: at most FEW (2), or at
    most MODES (4) of which no two differ only in a number (``fold1``, ``fold2``)."""
    texts = {v.repr for c in group.causes for v in (c.before, c.after) if isinstance(v, StaticValue)}
    if _values(group) <= FEW:
        return True
    return _values(group) <= MODES and len({_DIGITS.sub("", text) for text in texts}) == len(texts)


def _values(group: Group) -> int:
    """Return the number of different values of the static argument that made the calls in ``group``
    recompile. Values with equal texts count as one. A missing value counts as one, too."""
    values = {v.repr for c in group.causes for v in (c.before, c.after) if isinstance(v, StaticValue)}
    missing = any(not isinstance(v, StaticValue) for c in group.causes for v in (c.before, c.after))
    return len(values) + missing


def _many_static(group: Group) -> str:
    kind = _kind(_static(group))
    return WARNING if _values(group) > (FEW if kind == NUMBER else MODES) else NOTE


def _equinox(group: Group) -> str | None:
    """Return the wrapper of Equinox around the function of ``group``: ``equinox.filter_jit``, under which
    every Python number is static. Return None if there is none."""
    return next((w for w in group.function.seen.wrappers if w.startswith("equinox.")), None)


def _ordinary(group: Group, path: str) -> Message:
    """Return the advice to pass the number at ``path`` as an ordinary argument of the function of ``group``,
    not as a static one. It names the option to change: ``static_argnums`` of jit,
    ``static_broadcasted_argnums`` of pmap. Under Equinox, where numbers are static, the advice is to pass an
    array."""
    wrappers, equinox = group.function.seen.wrappers, _equinox(group)
    if equinox is not None:
        return message("fix-asarray-for-equinox", path=path, wrapper=equinox)
    names = "static_broadcasted_argnums" if "jax.pmap" in wrappers else "static_argnums/static_argnames"
    return message("fix-ordinary-argument", path=path, option=names)


@recompile_rule("JX107", "changing-static-value", WARNING, "static_value", severity_of=_many_static)
def changing_static_value(group: Group) -> Fix | None:
    """Return the advice for calls that recompiled for another value of a static argument; None if each value
    seems to need its own program."""
    path, kind = group.cause.path or UNNAMED, _kind_of(group)
    if kind == FLAG or (kind == WORD and _modes(group)) or (kind == OBJECT and _values(group) <= FEW):
        return None  # the argument selects a mode: each value needs its own program
    if kind == NUMBER and group.resized:
        return None  # another problem of another size: the call would recompile for the shapes, too
    if static_for_each_place(group.function, group.cause.path):
        return None  # each place passes its own value, for example a size for training and one for a test
    words, what = _ordinary(group, path), "ordinary_argument"
    loop = _loop_counted(group) if kind == WHOLE else None
    if loop is not None:
        arguments = {"path": group.cause.path, "loop": [loop.file, loop.line]}
        files = dict.fromkeys(at.file for at in (loop, *group.compilations[-1].lines))
        if any(line_names.differentiates(group.source(file)) for file in files):
            words = message("fix-static-count-of-gradient", path=path, loop=loop, ordinary=words)
        else:
            words = message("fix-static-count", path=path, loop=loop, ordinary=words)
        return Fix(words, "fori_loop", arguments)
    if kind == WHOLE:
        words = message("fix-static-size", path=path, ordinary=words)
    elif kind == WORD:
        words, what = message("fix-keep-the-same", path=path), "keep"
    elif kind == OBJECT:
        words = message("fix-static-object", path=path)
    if _values(group) <= FEW:
        words = message("fix-unless-mode", path=path, fix=words)
    return Fix(words, what, {"path": group.cause.path})


def _loop_counted(group: Group) -> Frame | None:
    """Return the line of a Python loop whose number of iterations is the static argument that made the calls
    in ``group`` recompile; None if none is found in the file of the function."""
    seen, path = group.function.seen, group.cause.path
    if seen.file is None or path is None or not path.isidentifier():
        return None
    line = loop_calls.loop_counted(group.source(seen.file), seen.name, path)
    return Frame(seen.file, line, "") if line is not None else None


@recompile_rule("JX108", "static-identity", WARNING, "static_identity")
def static_identity(group: Group) -> Fix | None:
    """Return the advice for calls that recompiled because a static argument was another object, although it
    may be equal. Return None if each calling line has its own object."""
    cause = group.cause
    path = cause.path or UNNAMED
    why = cause.detail.why if isinstance(cause.detail, StaticDetail) else None
    if why == UNSTABLE_HASH:
        return Fix(message("fix-stable-hash", path=path), "hash", {"path": cause.path})
    s = _static(group)
    if s is not None and s.type == "functools.partial":
        words = message("fix-one-partial", path=path)
    elif why in (FUNCTION, PARTS) or cause.count > 1:
        if why != PARTS and static_for_each_place(group.function, group.cause.path):
            return None  # for example two models, each with its own optimizer
        optimizer = path.endswith(".tx") or (s is not None and s.type.startswith("optax."))
        words = message("fix-one-object", path=path)
        at = _defined(s) if s is not None and why == FUNCTION else None
        if at is not None and STANDING(at.file) == Standing.USER:
            words = message("fix-one-function", path=path, captured=_captured(group, at.file, at.line))
        if optimizer:
            state = f"{path.removesuffix('.tx')}.opt_state" if path.endswith(".tx") else "opt_state"
            words = message("fix-one-optimizer", path=path, state=state)
    else:
        words = _of_class(group, s, path)
    return Fix(words, "create_once", {"path": cause.path})


def _defined(s: Static) -> Frame | None:
    """Return the line that defines the function ``s``. Logs of older versions have it only in the text."""
    if s.defined is not None:
        return s.defined
    found = _PLACE.search(s.repr)
    return Frame(found[1], int(found[2][:9]), "") if found is not None else None


def _captured(group: Group, file: str, line: int) -> Message | None:
    """Return the advice to pass as arguments the variables that the function at ``file`` and ``line``
    captures from the code around it. Return None if it captures none, or if its source is unknown. ``group``
    has the calls that recompiled."""
    names = line_names.captured(group.source(file), line)
    if not names:
        return None
    what = "it" if len(names) == 1 else "them"
    return message("pass-what-it-captures", names=Names(tuple(names), MODES), what=what, function=group.name)


def _of_class(group: Group, s: Static | None, path: str) -> Message:
    """Return the advice for ``group``, calls that recompiled because of a static argument at ``path``: an
    object of the user's class without ``__eq__`` and ``__hash__``. ``s`` is the argument; None: unknown.
    Usually the advice is to define these methods; if the program changes such objects, it is to pass their
    parts instead."""
    name = s.type.rpartition(".")[2].partition(" ")[0] if s is not None else ""
    files = [group.function.seen.file, *(c.site.file for c in group.compilations[-1:] if c.site is not None)]
    texts = [text for file in dict.fromkeys(files) if file and (text := group.source(file)) is not None]
    changes = [found for text in texts if (found := mutation.changed(text, name)) is not None]
    method = (
        path == (group.function.seen.signature or "(").lstrip("(").partition(",")[0].partition(")")[0].strip()
    )
    # Two equal objects could differ later, and a program with the old contents would be used.
    if any(changes) or (not changes and method and "." in group.function.seen.qualname):
        why = message("because-it-changes", name=name) if changes else None
        if method and path == "self":
            return message(
                "fix-function-without-self", function=group.function.seen.name, path=path, because=why
            )
        return message("fix-pass-its-parts", path=path, because=why)
    if not changes:
        return message("fix-eq-and-hash", path=path)
    if any(mutation.assigns_while_created(text, name) for text in texts):
        return message("fix-frozen-fields", path=path, name=name)
    return message("fix-frozen-dataclass", path=path, name=name)


@recompile_rule("JX109", "changing-tree-static", WARNING, "tree_static")
def changing_tree_static(group: Group) -> Fix | None:
    """Return the advice for calls that recompiled because a value in a pytree that is no array changed; None
    if each value seems to need its own program."""
    path, kind = group.cause.path or UNNAMED, _kind(_static(group))
    if kind == FLAG:
        return None  # on for training and off for evaluation: each needs its own program
    if static_for_each_place(group.function, group.cause.path):
        return None  # for example two models with different activation functions
    if kind in (NUMBER, WHOLE) and path.endswith("]") and _equinox(group) is not None:
        return Fix(_ordinary(group, path), "ordinary_argument", {"path": group.cause.path})
    if kind in (NUMBER, WHOLE):
        return Fix(message("fix-array-field", path=path), "array_field", {"path": group.cause.path})
    return Fix(message("fix-keep-the-same", path=path), "keep", {"path": group.cause.path})
