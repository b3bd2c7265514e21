"""Group the calls of a function that recompiled for the same cause, and make findings of the groups. The
rules about avoidable recompiles (JX101 to JX121) use this module."""

from __future__ import annotations

import ast
import itertools
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from operator import attrgetter, itemgetter

import msgspec

from jaxscope.analysis import line_names
from jaxscope.analysis.cause_grouping import same_change
from jaxscope.analysis.causes import SHAPES
from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.levels import LEVELS
from jaxscope.analysis.loop_calls import LONGEST, argument, call_at, collects
from jaxscope.analysis.paths import root, tokens
from jaxscope.analysis.source_lines import loop_around
from jaxscope.analysis.syntax import function_around, is_name, syntax
from jaxscope.model import call_places, causes, growing_args, predictions, sources
from jaxscope.model.growing_args import Caused
from jaxscope.model.records import Compilation, Function, cached_until_changed
from jaxscope.model.run import Run
from jaxscope.rules import registry, size_changes
from jaxscope.rules.size_changes import Change, Miss
from jaxscope.schema.causes import Cause, Container
from jaxscope.schema.findings import CERTAIN, LIKELY, NOTE, Evidence, Finding, Fix, extended, with_field
from jaxscope.schema.keys import Frame
from jaxscope.schema.libraries import CALLING_BACK
from jaxscope.schema.messages import Field, Message, Names, Parts, message

EVIDENCE = 5  # compilations named in one finding
# Changed inputs that a program may avoid, by padding or converting, or by passing a number as an array.
ADJUSTABLE = frozenset({*SHAPES, "dtype", "static_value"})
DEEP = 2  # a path with more names and keys is deep: x.state['count'] has three
TOO = 3  # other causes named in one finding
UNNAMED = "each changed argument"  # in advice, if the paths of the arguments that changed are unknown
# Kind of cause -> a clause, for causes beside the decisive one that have to be corrected, too.
CHANGED = {
    "shape": message("changed-shape"),
    "dtype": message("changed-dtype"),
    "weak_type": message("changed-weak-type"),
    "prng": message("changed-key-type"),
    "tree": message("changed-containers"),
    "static_value": message("changed-value"),
    "static_identity": message("was-another-object"),
    "call_form": message("was-passed-differently"),
    "sharding": message("changed-sharding"),
    "mesh": message("changed-mesh"),
    "committed": message("was-sometimes-committed"),
    "memory_kind": message("changed-memory-kind"),
    "layout": message("changed-layout"),
}
ALIKE = {**dict.fromkeys(SHAPES, "shape"), "tree_static": "static_value"}  # same clause in CHANGED
# If one of these kinds is decisive, all other differences follow from it.
FOLLOWED = frozenset({"transform", "unknown"})
OF_LEAVES = frozenset({*SHAPES, "dtype"})  # kinds of cause by which the leaves of one pytree differ
# Kinds of cause that are a property of one array.
OF_AN_ARRAY = frozenset(
    {"shape", "rank", "dtype", "weak_type", "sharding", "committed", "layout", "memory_kind", "mesh"}
)


class Group(msgspec.Struct, frozen=True):
    """Calls of one function that recompiled for the same reason.

    The reason is the decisive cause: the difference from an earlier call that made the cache miss. The
    decisive causes of a group mostly have the same kind (such as ``shape``) and the same path (the argument).

    Attributes:
      compilations: the calls, in order of time.
      causes: the decisive cause of each call.
      came_back: whether the array whose dtype, sharding or mesh changed in the latest call is a result of the
        function itself.
      lengthened: whether the array whose size changed is a result of the function itself, in most of the
        latest calls.
      of_leaves: whether the program makes one call for each leaf of a pytree: with ``jax.tree.map``, or in a
        loop over the layers of a model. Only for changes of shape or dtype.
      of_layers: whether ``of_leaves`` is True because of a loop over the layers of a model.
      source: returns the text of one of the user's files, or None if it is not available.
      resized: whether the shape of an argument also changed in each of the calls, so that they recompile for
        that alone.
    """

    function: Function
    compilations: list[Compilation]
    causes: list[Cause]
    came_back: bool = False
    lengthened: bool = False
    of_leaves: bool = False
    of_layers: bool = False
    source: Callable[[str], str | None] = sources.text
    resized: bool = False

    @property
    def cause(self) -> Cause:
        return self.causes[-1]

    @property
    def seconds(self) -> float:
        return sum(c.seconds for c in self.compilations)

    @property
    def calls(self) -> list[Compilation]:
        """The calls of the group, without compilations that a transform (``jax.grad``) added to a call. If
        the group has only such compilations, all of them."""
        return [c for c in self.compilations if not c.continues_a_trace] or self.compilations

    @property
    def name(self) -> str:
        return self.function.display_name


# The path of a value that a partial binds: partial.args[0], partial.keywords['params']['seed']
_BOUND = re.compile(r"partial\.(?:args\[(?P<index>\d+)\]|keywords\['(?P<name>\w+)'\])(?P<item>.*)")
MOST_BOUND = 4  # bound values that the advice names
Advise = Callable[[Group], Fix | None]
_ADVICE: dict[str, list[Advise]] = {}  # kind of cause -> what to do about it, by rule


def advice(group: Group) -> Fix | None:
    """Return the advice about ``group``, calls that recompiled for the same cause, from the rule that reports
    this kind of cause; None if no rule has advice."""
    registry.rules()  # fills the table
    found = (advise(group) for advise in _ADVICE.get(group.cause.kind, []))
    return next((fix for fix in found if fix is not None), None)


def group_of(run: Run, misses: Sequence[Caused]) -> Group:
    """Return ``misses``, at least one call of one function that recompiled for the same reason, as a
    ``Group``. Each call has the difference from an earlier call that explains the miss."""
    last, cause = misses[-1]
    of = {"sharding": None, "mesh": None, "dtype": attrgetter("dtype")}
    back = (
        cause.kind in of
        and cause.path not in (None, "context")
        and predictions.came_back(run, last, cause.path, of[cause.kind])
    )
    longer = growing_args.mostly(run, misses)
    leaves = cause.kind in OF_LEAVES and call_places.for_each_leaf(run, last)
    layers = leaves and call_places.for_each_layer(run, last)
    compilations, decisive = [c for c, _ in misses], [cause for _, cause in misses]
    resized = all(any(x.kind in ("shape", "rank") for x in causes.of(run, c)) for c in compilations)
    return Group(
        last.function, compilations, decisive, back, longer, leaves, layers, sources.of(run), resized
    )


def container(cause: Cause) -> str | None:
    """Return the path of the container that got a new leaf, if this is the cause of a recompile: ``history``,
    if ``history[3]`` is new. Return None if ``cause`` is another change."""
    if cause.kind != "tree" or cause.path is None or cause.before is not None or cause.after is None:
        return None
    return "".join(tokens(cause.path)[:-1]) or None


def is_deep_weak_type(cause: Cause) -> bool:
    """Return whether a recompile happened because the weak type changed of several leaves, or of one leaf
    deep in a library's state (a path with more than DEEP names and keys). The advice is then to convert
    leaves of the argument together. False if the path is unknown."""
    if cause.kind != "weak_type" or cause.path is None:
        return False
    return cause.count > 1 or len(tokens(cause.path)) > DEEP


def groups(run: Run, kinds: tuple[str, ...], *, fast_path: bool = False) -> list[Group]:
    """Return the avoidable calls of the user's functions that missed a cache because of one of ``kinds``
    (such as ``shape``), as groups of calls with the same function and cause. With ``fast_path``, return the
    calls that only missed the fast path (the C++ cache of earlier calls), instead of those that traced,
    lowered or compiled."""
    by_kind = _of_fast_path(run) if fast_path else _of_recompiles(run)
    found = [pair for kind in kinds for pair in by_kind.get(kind, [])]
    return [group for _, group in sorted(found, key=itemgetter(0))]


ByKind = dict[str, list[tuple[int, Group]]]  # kind of cause -> (position of the function, group)


@cached_until_changed
def _of_recompiles(run: Run) -> ByKind:
    return _by_kind(run, lambda f: itertools.chain.from_iterable(causes.reasons(f, run).values()))


@cached_until_changed
def _of_fast_path(run: Run) -> ByKind:
    return _by_kind(run, lambda f: [(c, causes.of(run, c)[0]) for c in f.compilations if c.only_missed])


def _by_kind(run: Run, misses: Callable[[Function], Iterable[Caused]]) -> ByKind:
    """Return a dict: kind of cause (``shape``) -> pairs of (position of the function in the run, a group of
    its calls that missed a cache for the same cause). Only the user's functions, and misses that the user can
    avoid, are included. ``misses`` returns the calls of a function to group, each with the cause that made
    the cache miss."""
    found: ByKind = {}
    for n, f in enumerate(run.functions.values()):
        members: dict[tuple[object, ...], list[Caused]] = {}
        for c, cause in _avoidable(run, list(misses(f))) if f.user else ():
            where = container(cause)  # each call adds another path to it: group by the container
            if is_deep_weak_type(cause):
                where = root(cause.path or "")  # the whole argument is to be converted
            key: tuple[object, ...] = (cause.kind, cause.path if where is None else where, where is None)
            if cause.kind in OF_LEAVES and c.site is not None and call_places.for_each_leaf(run, c):
                key = ("shape", *c.site.place)  # all leaves that one line passes, of any shape and dtype
            members.setdefault(key, []).append((c, cause))
        for same_kind in members.values():
            same_kind.sort(key=lambda pair: pair[0].t_ns)  # a finding names the latest change
        for (kind, *_), pairs in _with_copies(_with_backward_passes(f, members)).items():
            found.setdefault(str(kind), []).append((n, group_of(run, pairs)))
    return found


def _with_backward_passes(
    f: Function, members: dict[tuple[object, ...], list[Caused]]
) -> dict[tuple[object, ...], list[Caused]]:
    """Return ``members``, the recompiles of ``f`` by cause. Those of the backward pass of ``jax.grad``, whose
    arguments are not the parameters of ``f``, are put into the group of the calls of ``f`` with the same kind
    of cause."""
    found = dict(members)
    for key, pairs in members.items():
        passed = {root(cause.path or "") for c, cause in pairs if c.entry == "transform"}
        if passed != {"args"} or re.search(r"\bargs\b", f.seen.signature or "args"):
            continue
        forward = next(
            (k for k in found if k != key and k[0] == key[0] and found[k][0][0].entry == "call"), None
        )
        if forward is not None and len(pairs) == sum(c.entry == "transform" for c, _ in pairs):
            found[forward] = [*found.pop(key), *found[forward]]
    return found


def _with_copies(members: dict[tuple[object, ...], list[Caused]]) -> dict[tuple[object, ...], list[Caused]]:
    """Return ``members``, the recompiles of one function by cause. Those for weakly typed copies of
    parameters in an optimizer's state are put before those for the parameters in one group, so that a finding
    names the parameters."""
    found = dict(members)
    weak = [key for key in found if key[0] == "weak_type"]
    for key, other in itertools.permutations(weak, 2):
        if key not in found or other not in found:
            continue
        paths = [cause.path or "" for _, cause in found[key]]
        parameters = [cause.path for _, cause in found[other]]
        if all(any(of_optimizer(path, parameter) for parameter in parameters) for path in paths):
            found[other] = [*found.pop(key), *found[other]]
    return found


def _avoidable(run: Run, misses: list[Caused]) -> list[Caused]:
    """Return those of ``misses`` that the user can avoid. ``misses`` are calls of one function that missed a
    cache, each with its decisive cause."""
    # A new object with new inputs needs a new program anyway, unless the user can avoid both changes.
    again = {
        c.id for c, cause in misses if cause.kind not in causes.CREATED_AGAIN or causes.created_again(run, c)
    }
    both = _changed_inputs(run, [c for c, _ in misses if c.id not in again])
    if _advice_about_inputs(run, both) is not None:
        again.update(c.id for c, _ in both)
    return [(c, cause) for c, cause in misses if c.id in again]


def _changed_inputs(run: Run, calls: Sequence[Compilation]) -> list[Caused]:
    """Return (call, cause) for those of ``calls`` whose function object was created for this call alone, and
    that also have a new shape, dtype or static value of an input. The cause is the change of that input."""
    found = [(c, why) for c in calls if (why := causes.changed_input(run, c)) is not None]
    return [(c, why) for c, why in found if why.kind in ADJUSTABLE]


def _advice_about_inputs(run: Run, changed: Sequence[Caused]) -> Fix | None:
    """Return the advice about the most frequent change in ``changed``: how to keep the shape, dtype or value
    of an argument. Return None if there are no calls, or if no rule has advice."""
    found = grouped(((why.kind, why.path), (c, why)) for c, why in changed)
    if not found:
        return None
    most = max(found.values(), key=len)
    return advice(group_of(run, most))


def recompile_rule(
    code: str, name: str, severity: str, *kinds: str, severity_of: Callable[[Group], str] | None = None
) -> Callable[[Advise], Advise]:
    """Return a decorator that registers a rule about avoidable recompiles with one of the causes ``kinds``:
    ``@recompile_rule("JX101", "changing-shape", WARNING, "shape", "rank")``.

    The decorated function is passed a group of calls that recompiled for the same reason. It returns the
    advice, or None if there is nothing to report. ``code``, ``name`` and ``severity`` are those of the rule.
    ``severity_of`` returns the severity of the finding about a group; None: it is ``severity``. (If the cause
    is unknown, the finding is a note.)
    """

    def decorate(advise: Advise) -> Advise:
        def check(run: Run) -> Iterator[Finding]:
            found = [(group, fix) for group in groups(run, kinds) if (fix := advise(group)) is not None]
            met = {id(misses := _misses(group)): (group, fix, misses) for group, fix in found}
            near: dict[Hashable, list[list[Miss]]] = {}
            for group, _, m in met.values():
                near.setdefault(id(m) if group.of_leaves else _where_steps_are_one(run, m), []).append(m)
            for change in itertools.chain.from_iterable(size_changes.together(run, m) for m in near.values()):
                group, fix, _ = met[id(change.group)]
                weight = severity_of(group) if severity_of else severity
                yield finding(run, code, weight, group, fix, also=change)

        registry.add(code, name, severity, check, recompiles=True)
        for kind in kinds:
            _ADVICE.setdefault(kind, []).append(advise)
        return advise

    return decorate


def _where_steps_are_one(run: Run, misses: Sequence[Miss]) -> Hashable:
    """Return a value for ``misses``, a group of recompiles. Only groups with equal values may come from one
    change of size. The value is None if all training steps are known; else it identifies the loop that
    contains all calls of the group, or the group itself if there is no such loop."""
    if not any(m.step is None for m in misses):
        return None
    loops: set[Hashable] = set()
    for m in misses:
        at = m.compilation.site
        around = loop_around(sources.of(run)(at.file), at.line) if at is not None else None
        if at is None or around is None:
            return id(misses)
        loops.add((at.file, around))
    return loops.pop() if len(loops) == 1 else id(misses)


def _misses(group: Group) -> list[Miss]:
    """Return the calls in ``group``, each with its step and cause."""
    return [Miss(c, c.step, cause) for c, cause in zip(group.compilations, group.causes, strict=True)]


def finding(
    run: Run,
    code: str,
    severity: str,
    group: Group,
    fix: Fix,
    title: Message | None = None,
    also: Change | None = None,
) -> Finding:
    """Return the finding about ``group``, calls of one function that recompiled for the same reason, with the
    advice ``fix``. ``code`` is the code of the rule. If the cause is unknown, the finding is a note, whatever
    ``severity`` is.

    Args:
      title: replaces the usual title (``train_step recompiled 3 times, ...``).
      also: further functions that recompiled because of the same change of size.
    """
    last, shown = group.calls[-1], {c.id for c in group.calls}
    pairs = [(c, why) for c, why in zip(group.compilations, group.causes, strict=True) if c.id in shown]
    return Finding(
        code=code,
        severity=severity if severity == NOTE or group.cause.kind != "unknown" else NOTE,
        certainty=CERTAIN if all(c.certainty == CERTAIN for c in group.causes) else LIKELY,
        title=title or _title(run, group, also),
        function=group.function.id,
        source=last.site,
        evidence=[
            Evidence(_call(run, c, cause), compilation=c.id, source=c.site, step=c.step)
            for c, cause in pairs[-EVIDENCE:]
        ]
        + [e for _, e in (size_changes.evidence(run, also) if also is not None else [])]
        + _maker(last, group.cause),
        fix=as_passed(run, group, _with_others(run, group, fix)),
        seconds=group.seconds if also is None else also.seconds,
        at_most=_of_several_programs(group),
        path=group.cause.path,
        subject=(group.cause.kind, container(group.cause) or group.cause.path),
    )


def _of_several_programs(group: Group) -> bool:
    """Return whether the calls in ``group`` recompiled because a function or object was created again, and
    the function has several programs."""
    programs = {c.program for c in group.function.compilations if c.program is not None}
    return group.cause.kind in causes.CREATED_AGAIN and len(programs) > 1


def _title(run: Run, group: Group, also: Change | None) -> Message:
    """Return the title of the finding about ``group``, recompiles of one function for one cause: ``train_step
    recompiled 3 times, most recently: batch['x'] changed from f32[64] to f32[29]``.

    Args:
      also: further functions that recompiled because of the same change of size; None: none.
    """
    n, last = len(group.calls), group.calls[-1]
    fields: dict[str, Field] = {
        "function": group.name,
        "cause": group.cause,
        "than": than(run, last),
        "also": size_changes.also(also) if also is not None else None,
    }
    if n == 1:
        return message("recompiled", **fields)
    if all(same_change(c, group.cause) for c in group.causes):
        return message("recompiled-alike", n=n, **fields)
    if group.cause.kind == "weak_type":
        roots = Names(tuple(dict.fromkeys(root(c.path) for c in group.causes if c.path)))
        return message("recompiled-weak-types", n=n, roots=roots, **fields)
    return message("recompiled-variously", n=n, **fields)


def _maker(c: Compilation, cause: Cause) -> list[Evidence]:
    """Return evidence with the user's line that created the array whose change, ``cause``, made the call
    ``c`` recompile. The list is empty if that line is unknown, or is the line of the call."""
    made = c.made_at(cause.path) if cause.kind in OF_AN_ARRAY and cause.path else None
    if made is None or c.site is None or made.place == c.site.place:
        return []
    return [Evidence(message("made-there", path=cause.path), compilation=c.id, source=made, step=c.step)]


def _with_others(run: Run, group: Group, fix: Fix) -> Fix | None:
    """Return the advice ``fix``, extended by other changes of arguments that would make the calls of
    ``group`` recompile even if the user followed ``fix``: ``; do the same for ys`` if the other arguments
    changed in the same way in all calls, else `` (xs also changed dtype in 2 of these)``."""
    if group.cause.kind == "new_function":
        return _with_inputs(run, group, fix)
    if group.of_leaves:
        return fix
    found: Counter[tuple[str, str]] = Counter()  # paths and what changed of them: a key of CHANGED
    alike = _changed(group.cause)
    for c in group.calls:
        decisive, *others = causes.of(run, c)
        if decisive.kind in FOLLOWED:
            continue
        known = {(decisive.path, _changed(decisive)), (decisive.path, "weak_type")}
        if decisive.kind == "tree":  # the advice covers all containers; for a None, all arguments with None
            none = is_none_at_times(decisive)
            others = [o for o in others if o.kind != "tree" or (none and is_none_at_times(o))]
        # The advice is about all of the argument
        whole = fix.arguments.get("path") == root(decisive.path or "")
        if (whole or group.lengthened or is_deep_weak_type(decisive)) and decisive.path:
            others = [o for o in others if not o.path or root(o.path) != root(decisive.path)]
        changed = [
            (o.path, kind)
            for o in others
            if o.path
            and not of_optimizer(o.path, decisive.path)
            and (kind := _changed(o)) is not None
            and LEVELS.index(o.level) <= LEVELS.index(decisive.level)
        ]
        found.update(change for change in dict.fromkeys(changed) if change not in known)
    if not found:
        return fix
    n = len(group.calls)
    same = [path for (path, kind), times in found.items() if kind == alike and times == n]
    if len(same) == len(found) and group.cause.path != "context":
        return extended(fix, "fix-same-for", paths=Names(tuple(same), TOO))
    changes = [
        message("also-changed", path=path, changed=CHANGED[kind], calls=_in_calls(times, n))
        for (path, kind), times in found.most_common(TOO)
    ]
    more = (message("more-of-them", n=len(found) - TOO),) if len(found) > TOO else ()
    return extended(fix, "fix-with-others", others=Parts((*changes, *more)))


def as_passed(run: Run, group: Group, fix: Fix | None) -> Fix | None:
    """Return the advice ``fix``, extended by the name that the caller uses for the parameter in the advice:
    ``(x is seq at utils.py:30)``. The name is taken from the line of the latest call in ``group``. Return
    ``fix`` unchanged if there is nothing to explain, or if the name is unknown."""
    c, path = group.calls[-1], group.cause.path
    if fix is None or not path or c.site is None or c.missed is None:
        return fix
    f, slug = group.function.seen, fix.words.slug if isinstance(fix.words, Message) else None
    collected = root(path) == collects(f.signature)
    if not collected and not _mentions(fix.words, root(path)):
        return fix
    parameter = "".join(tokens(path)[:2]) if collected else root(path)
    text = sources.of(run)(c.site.file)
    call = call_at(text, c.site.line, c.missed.column, f.name)
    names = line_names.imported(syntax(text))
    package = line_names.full_name(call.func, names).partition(".")[0] if call is not None else ""
    if package in CALLING_BACK:  # the line passes the function to a library, which calls it
        if slug == "fix-typed-array" and isinstance(fix.words, Message):
            words = message("fix-convert-for-library", library=package, **fix.words.fields)
            return msgspec.structs.replace(fix, words=words)
        return fix
    of_class = "." in f.qualname.rpartition("<locals>.")[2]
    passed = argument(call, f.signature, parameter, of_class=of_class) if call is not None else None
    if passed is None or not (collected or isinstance(passed, (ast.Name, ast.Attribute))):
        return fix
    name = ast.unparse(passed)
    if slug == "fix-one-dtype" and isinstance(passed, ast.Name):
        fix = _with_integer(fix, group, text, c.site, name)
    if name == parameter or len(name) > LONGEST:
        return fix
    if slug == "fix-one-object" and isinstance(passed, ast.Attribute) and not is_name(passed.value, "self"):
        words = message("fix-one-owner", owner=ast.unparse(passed.value), name=name)
        return msgspec.structs.replace(fix, words=words)
    if collected:
        return extended(fix, "fix-args-as-passed", parameter=parameter, name=name, line=c.site)
    return extended(fix, "fix-as-passed", parameter=parameter, name=name, line=c.site)


def float_instead(group: Group, number: int) -> str:
    """Return the expression of a float that has the type to which an integer argument changed: ``0.0`` if
    that type is weak, else ``jnp.float32(0)``. ``number`` is the integer."""
    key, cause = group.calls[-1].key, group.cause
    leaf = next((a for a in key.arguments if a.path == cause.path), None) if key is not None else None
    if leaf is None or leaf.weak_type or leaf.dtype is None:
        return f"{number}.0"
    return f"jnp.{leaf.dtype}({number})"


def _with_integer(fix: Fix, group: Group, source: str | None, site: Frame, name: str) -> Fix:
    """Return ``fix``, the advice to keep one dtype, with the line where the function that contains the line
    ``site`` assigns an integer to the variable ``name``, which it passes. ``source`` is the text of the
    file."""
    found = syntax(source)
    around = function_around(found, site.line) or found.tree
    for n in ast.walk(around):
        value = n.value if isinstance(n, ast.Assign) and any(is_name(t, name) for t in n.targets) else None
        if isinstance(value, ast.Constant) and type(value.value) is int:
            line = Frame(site.file, value.lineno, "")
            old, new = str(value.value), float_instead(group, value.value)
            number = message("write-a-float", name=name, old=old, new=new, line=line)
            return with_field(fix, "fix-one-dtype", number=number)
    return fix


def _mentions(words: Field, name: str) -> bool:
    """Return whether a text of advice mentions the parameter ``name``: ``words``, or a field of the message
    ``words``, is a path that begins with ``name``, such as ``state.params`` for ``state``."""
    if isinstance(words, Message):
        return any(_mentions(value, name) for value in words.fields.values())
    return isinstance(words, str) and root(words) == name


def _with_inputs(run: Run, group: Group, fix: Fix) -> Fix | None:
    """Return the advice ``fix`` about a function that is created again, together with the advice about the
    inputs that changed in the same calls, those of ``group``. If values that a ``functools.partial`` binds
    changed, the advice is to pass these values as arguments."""
    if isinstance(fix.words, Message) and fix.words.slug == "fix-larger-cache":
        return fix  # inputs that changed are probably those of another function in the cache
    bound = _bound_values(run, group)
    if bound and isinstance(fix.words, Message) and fix.words.slug == "fix-jit-partial-once":
        return msgspec.structs.replace(
            fix,
            words=message(
                "fix-pass-bound-values",
                values=Names(bound, MOST_BOUND),
                differentiated=fix.words.fields.get("differentiated"),
            ),
        )
    changed = _changed_inputs(run, group.calls)
    then = _advice_about_inputs(run, changed)
    if then is None:
        return fix
    (path, kind), times = Counter((why.path, _changed(why)) for _, why in changed).most_common(1)[0]
    if path is None or kind is None or 2 * times < len(group.calls):
        return fix
    calls = _in_calls(times, len(group.calls))
    also = message("also-changed", path=path, changed=CHANGED[kind], calls=calls)
    return extended(fix, "fix-then", then=then.words, also=also)


def _bound_values(run: Run, group: Group) -> tuple[str, ...]:
    """Return the values bound by a ``functools.partial`` that changed in calls of ``group``. They are named
    as the user wrote them: ``rate``, ``params['seed']``; those bound by position are ``argument 0``."""
    paths = [
        why.path for c in group.calls for why in causes.of(run, c) if why.path and why.before != why.after
    ]
    found = [m for m in map(_BOUND.fullmatch, dict.fromkeys(paths)) if m is not None]
    return tuple(f"{m['name']}{m['item']}" if m["name"] else f"argument {m['index']}" for m in found)


def is_none_at_times(cause: Cause) -> bool:
    """Return whether an argument is None in one of the two calls that ``cause`` compares, and an array or a
    container in the other."""
    return bool(cause.before and cause.after) and Container("None") in (cause.before, cause.after)


def _changed(cause: Cause) -> str | None:
    """Return the key of the dict CHANGED for ``cause``: ``shape`` for a changed shape or rank. Return None if
    CHANGED has no clause for this kind of cause."""
    kind = ALIKE.get(cause.kind, cause.kind)
    return kind if kind in CHANGED else None


def _in_calls(times: int, n: int) -> Message:
    if times < n:
        return message("in-some-of-these", n=times)
    return message("in-this-call") if n == 1 else message("in-all-of-these", n=n)


def of_optimizer(path: str, parameter_path: str | None) -> bool:
    """Return whether ``path`` is an array that an optimizer keeps for the parameter at ``parameter_path``:
    ``opt[0].mu.layer.w`` for ``params.layer.w``."""
    if parameter_path is None or root(path) == root(parameter_path):
        return False
    within, parameter = tokens(path)[1:], tokens(parameter_path)[1:]
    before = within[: -len(parameter)] if parameter else within
    return within[len(before) :] == parameter and bool(_STATES & {t.strip("[]'.") for t in before})


_STATES = frozenset({"mu", "nu", "trace", "momentum"})  # optax's names of its arrays for each parameter


def _call(run: Run, c: Compilation, cause: Cause) -> Message:
    n = run.number(c)
    return message(
        "recompiled-call",
        call=f"#{n}" if n else "a call",
        cause=cause,
        than=than(run, c),
    )


def than(run: Run, c: Compilation) -> Message | None:
    """Return a clause that names the earlier compilation with which ``c`` is compared: ``compared with
    compilation #9``. Return None if there is none, if it has no number, or if it is the compilation right
    before ``c``, which needs no clause."""
    number = causes.number_if_not_previous(run, c)
    return message("compared-with", number=number) if number is not None else None
