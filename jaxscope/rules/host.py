"""JX601, JX602 and JX511: waiting for the device in every step, large transfers, arrays on another device."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from jaxscope.model import transfers as model
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.model.transfers import BETWEEN, NOT_ASKED, TO_DEVICE, TO_HOST, Transfer
from jaxscope.rules.registry import rule
from jaxscope.rules.shardings import moved
from jaxscope.schema.findings import CERTAIN, LIKELY, NOTE, WARNING, Evidence, Finding
from jaxscope.schema.keys import Frame

FEWEST_STEPS, MOST_STEPS = 8, 0.9  # share of the steps since the first
FEWEST = 20  # where nobody counts steps
MUCH, MUCH_UNCOUNTED = 0.05, 0.2  # share of the time in between that the program stood there
LARGE, OFTEN = 8 << 20, 4  # bytes of one, and how many


@rule("JX601", "host-copy-each-step", WARNING)
def host_copy(run: Run) -> Iterator[Finding]:
    for t in model.transfers(run):
        if t.direction != TO_HOST or t.source is None or t.kind in NOT_ASKED or not t.count:
            continue
        often = _in_each_step(run, t)
        if not often or t.share is None or 2 * (t.waits or 0) < t.count:
            continue
        if t.share < (MUCH if t.steps else MUCH_UNCOUNTED):
            continue
        waited = t.blocked_seconds or 0.0
        views = t.views == t.count
        what = f"{_expression(t)} at {PurePath(t.source.file).name}:{t.source.line}"
        verb = "reads from the device" if views else "copies to the host"
        told = f"{t.count:,} times, {_bytes(t.bytes)}; {t.share:.0%} of the time from the first to the last"
        yield Finding(
            code="JX601",
            severity=WARNING,
            certainty=CERTAIN if t.steps else LIKELY,
            title=f"{what} {verb} {often} and waited {_seconds(waited)} there",
            source=t.source,
            evidence=[
                Evidence(told + (", without a copy on this backend" if views else ""), source=t.source)
            ],
            fix=_instead(t),
            seconds=waited,
        )


def _in_each_step(run: Run, t: Transfer) -> str | None:
    """``in each of 200 steps``, ``200 times``; None: neither so often nor in nearly every step."""
    if t.steps is not None:
        total = model.steps(run, t.process)
        since = total - max(t.first_step or 1, 1) + 1 if total is not None else t.steps
        if t.steps < FEWEST_STEPS or t.steps < MOST_STEPS * since:
            return None
        return f"in each of {t.steps:,} steps" if t.steps >= since else f"in {t.steps:,} of {since:,} steps"
    return f"{t.count:,} times" if t.count is not None and t.count >= FEWEST else None


def _expression(t: Transfer) -> str:
    return t.text or {"np.asarray": "np.asarray()", "print": "printing"}.get(t.kind, f"{t.kind}()")


def _instead(t: Transfer) -> str:
    if t.kind == "bool":
        return "decide on the device (jnp.where, jax.lax.cond), or look every so many steps"
    if t.kind in ("print", "format"):
        return "print every so many steps, or with jax.debug.print inside the jitted function"
    return "add it up on the device and read it every so many steps, or read the one of the step before"


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value >= 0.95 else f"{value * 1e3:.0f} ms"


def _bytes(n: int | None) -> str:
    return "bytes not known" if n is None else f"{n:,} bytes"


@rule("JX602", "large-transfer", WARNING)
def large(run: Run) -> Iterator[Finding]:
    for t in model.transfers(run):
        if t.direction not in (TO_HOST, TO_DEVICE) or t.source is None or t.kind == "constant":
            continue
        each = t.bytes_each
        if each is None or each < LARGE or t.count is None or t.count < OFTEN:
            continue
        if t.direction == TO_HOST and t.views == t.count:
            continue
        shared = run.platform == "cpu"
        way = "to the host" if t.direction == TO_HOST else "to the device"
        what = t.text or (f"{', '.join(t.paths[:3])} of {t.function.seen.name}" if t.function else t.kind)
        yield Finding(
            code="JX602",
            severity=NOTE if shared else WARNING,
            certainty=CERTAIN,
            title=f"{what} at {PurePath(t.source.file).name}:{t.source.line} moves {each:,.0f} bytes {way},"
            f" {t.count:,} times",
            function=t.function.id if t.function else None,
            source=t.source,
            evidence=[Evidence(f"{_bytes(t.bytes)} in all", source=t.source)],
            fix="copy less of it, or less often: jax.device_get of what is needed, every so many steps"
            if t.direction == TO_HOST
            else "put it on the device once, before the loop; where it is new each time, put the next one"
            " while the device computes",
            seconds=t.blocked_seconds,
        )


@rule("JX511", "array-elsewhere", WARNING)
def elsewhere(run: Run) -> Iterator[Finding]:
    told, lines = set(), set()  # by JX508
    for function, (call, _) in moved(run):
        told.add(function.id)
        lines.add(_line(call.site))
    for t in model.transfers(run):
        if t.direction != BETWEEN or t.kind != model.ARGUMENT or t.source is None:
            continue
        if t.count is not None and t.count < OFTEN:
            continue
        c = _call_at(run, t)
        f = c.function if c is not None else t.function
        if f.id in told if f is not None else _line(t.source) in lines:
            continue
        paths = t.paths or (_paths_elsewhere(c) if c is not None else ())
        name = c.function.seen.name if c is not None else "a jitted function"
        times = "in each call" if t.count is None else f"{t.count:,} times"
        one = len(paths) == 1
        what = ", ".join(paths[:3]) + (", ..." if len(paths) > 3 else "") if paths else "an argument"
        verb = "lies" if one or not paths else "lie"
        amount = "" if t.bytes is None else f": {_bytes(t.bytes)} copied {times}"
        yield Finding(
            code="JX511",
            severity=WARNING if t.count is not None else NOTE,
            certainty=CERTAIN,
            title=f"{what} of {name} {verb} on another device than its program runs on{amount}",
            function=c.function.id if c is not None else None,
            source=t.source,
            evidence=[
                Evidence(_where(c, paths), compilation=c.id if c is not None else None, source=t.source)
            ],
            fix="put it once where it is used: jax.device_put(x, w.sharding) with the sharding of what is there",
            seconds=t.blocked_seconds,
        )


def _line(at: Frame | None) -> tuple[str, int] | None:
    return None if at is None else (at.file, at.line)


def _call_at(run: Run, t: Transfer) -> Compilation | None:
    """The call that moves them: of its function, or the last at this line that has arrays from elsewhere."""
    found = [
        c
        for c in (t.function.compilations if t.function is not None else run.compilations.values())
        if c.process is t.process
        and c.site is not None
        and t.source is not None
        and (c.site.file, c.site.line) == (t.source.file, t.source.line)
        and _paths_elsewhere(c)
    ]
    return found[-1] if found else None


def _paths_elsewhere(c: Compilation) -> tuple[str, ...]:
    """Arguments that lie elsewhere than the call's program runs."""
    if c.key is None:
        return ()
    places = [(leaf.path, model.devices_of(c, leaf)) for leaf in c.key.arguments if leaf.type == "jax.Array"]
    target = model.devices_of_program(c)
    return tuple(path for path, at in places if at is not None and target is not None and at != target)


def _where(c: Compilation | None, paths: tuple[str, ...]) -> str:
    if c is None or c.key is None:
        return "copied between devices when it is called"
    texts = [
        f"{leaf.path}: {c.key.shardings[leaf.sharding].text}"
        for leaf in c.key.arguments
        if leaf.path in paths and leaf.sharding is not None and leaf.sharding < len(c.key.shardings)
    ]
    ran = c.compiled.devices if c.compiled is not None else None
    return "; ".join(texts[:3]) + (f"; the program runs on devices {ran}" if ran else "")
