"""Write a run as the JSON report. The module ``contract`` defines the types of the entries; this module
creates the entries."""

from __future__ import annotations

import datetime
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from jaxscope import __version__
from jaxscope.log.store import RunDir
from jaxscope.model import causes, deaths, ledger, observed_sizes, payers, predictions
from jaxscope.model.causes import compared
from jaxscope.model.load import state
from jaxscope.model.ranks import Job
from jaxscope.model.records import Compilation, Function, Process, StaleCapture
from jaxscope.model.run import Run
from jaxscope.model.wall_time import wall_time
from jaxscope.present import render
from jaxscope.report import (
    arrays,
    comparison_table,
    contract,
    line_times,
    measured,
    ranks,
    sharding_audit,
    step_time,
    targets,
    transfers,
    variants,
)
from jaxscope.report.programs import program_json
from jaxscope.rules import ranks as rank_rules
from jaxscope.schema.events import Missed
from jaxscope.schema.keys import Frame, Key, table_entry

SCHEMA = 1
PIECE = 1 << 16  # about so many characters are formatted and yielded at a time


Section = tuple[str, Any]  # a key of the report; its value, or an iterator over the entries of a list


def as_json(run: Run, directory: RunDir | None = None, job: Job | None = None) -> dict[str, Any]:
    """Return the whole JSON report of the run ``run`` as plain data.

    Args:
      directory: the directory of the run; None: unknown. The report then lacks the settings of ``run
        --vary``, the runs with other settings, and the program's ``state``.
      job: all processes that were recorded together, of which ``run`` is one; None: ``run`` is the only one.
    """
    found: dict[str, Any] = json.loads(dumps(_collected(sections(run, directory, job))))
    return found


def _collected(members: Iterable[Section]) -> dict[str, Any]:
    """Return ``members``, the keys of a report with their values, as a dict. Iterators become lists, and
    the reports of sub-runs in them become dicts."""
    return {
        key: [_collected(e) if isinstance(e, Iterator) else e for e in value]
        if isinstance(value, Iterator)
        else value
        for key, value in members
    }


def pieces(run: Run, directory: RunDir | None = None, job: Job | None = None) -> Iterator[str]:
    """Yield the text of the JSON report of ``run`` in parts of about PIECE characters. A part with a large
    value is longer; the last part may be shorter.

    Args:
      directory: the directory of the run; None: unknown (see ``as_json``).
      job: all processes that were recorded together, of which ``run`` is one; None: ``run`` is the only one.
    """
    waiting: list[str] = []
    size = 0
    for text in _written(sections(run, directory, job)):
        waiting.append(text)
        size += len(text)
        if size >= PIECE:
            yield "".join(waiting)
            waiting, size = [], 0
    yield "".join([*waiting, "\n"])


def sections(run: Run, directory: RunDir | None = None, job: Job | None = None) -> Iterator[Section]:
    """Yield the keys of the JSON report in their order, each as (key, value). The value of a long list is an
    iterator over its entries, which can be read only once. An entry that is itself an iterator is the report
    of a sub-run, as this function yields it.

    Args:
      directory: the directory of the run; None: unknown (see ``as_json``).
      job: all processes that were recorded together, of which ``run`` is one; None: ``run`` is the only one.
    """
    parts = variants.of(run, directory)
    compilations = sorted(run.compilations.values(), key=lambda c: (c.t_ns, c.process.pid, c.call))
    functions = sorted(run.functions.values(), key=lambda f: (-f.seconds, f.id))
    programs = sorted(run.programs.values(), key=lambda p: p.id)
    elsewhere = sorted(run.retargeted.values(), key=lambda p: p.id)
    yield "schema", SCHEMA
    yield "jaxscope", __version__
    yield "run", _run(run, directory)
    yield "functions", (function_json(f) for f in functions)
    yield "compilations", (compilation_json(run, c, run.number(c)) for c in compilations)
    yield (
        "programs",
        itertools.chain(
            (program_json(p, run.texts_of(p)) for p in programs),
            (targets.program_json(run, p) for p in elsewhere),
        ),
    )
    yield "predictions", (_prediction(p) for p in predictions.predictions(run))
    yield "ledger", (_total(e) for e in ledger.entries(run))
    yield "outside_jit", (_paying_line(p) for p in payers.payers(run))
    yield "stale_captures", (_stale(s) for s in run.stale)
    yield "buckets", (_bucket(v) for v in observed_sizes.varying(run))
    yield "arrays", arrays.as_json(run)
    yield "transfers", transfers.as_json(run)
    yield "profiles", measured.as_json(run)
    yield "step_time", step_time.as_json(run)
    yield "line_times", line_times.as_json(run)
    yield "findings", findings(parts, job)
    yield "sub_runs", (sections(part.run, part.directory) for part in parts[1:])
    yield "comparisons", comparison_table.as_json(parts)
    yield "ranks", ranks.as_json(job)


def findings(parts: Sequence[variants.Variant], job: Job | None = None) -> Iterator[contract.Finding]:
    """Yield the entries of the list ``findings`` in the JSON report: first those about differences between
    processes, then those about the runs in ``parts``.

    Args:
      parts: the run, then its sub-runs (the same program with other settings or numbers of devices).
      job: all processes that were recorded together; None: there is only one, and so no differences.
    """
    for f in ranks.of_ranks(job):
        yield contract.Finding.of(f)
    for f in rank_rules.without_published(variants.findings(parts), job):
        yield contract.Finding.of(f, variants.sub_run(f, parts))


def _written(members: Iterable[Section], depth: int = 0) -> Iterator[str]:
    """Yield the text of a JSON object in parts, indented as ``dumps`` does. No line end follows the last
    line. ``members`` has its keys and values; an iterator as a value becomes a list. ``depth``: spaces before
    the last line; the lines between the first and the last have more."""
    line = "\n" + " " * depth
    comma = "{"
    for key, value in members:
        yield f'{comma}{line} "{key}": '
        comma = ","
        if not isinstance(value, Iterator):
            yield _text(value).replace("\n", line + " ")  # strings contain no line ends: JSON escapes them
            continue
        bracket = "["
        for text in _entries(value, depth + 2):
            yield f"{bracket}{line}  "
            bracket = ","
            yield from text
        yield f"{line} ]" if bracket == "," else "[]"
    yield f"{line}}}"


def _entries(values: Iterator[Any], depth: int) -> Iterator[Iterable[str]]:
    """Yield the text of the entries ``values`` of a JSON list. Each item that is yielded is an iterable of
    parts of text: one entry, or several with commas between them. ``depth``: spaces before each line except
    the first."""
    waiting: list[bytes] = []
    size = 0
    for value in values:
        data = None if isinstance(value, Iterator) else _encoded(value)
        if data is not None:
            waiting.append(data)
            size += len(data)
        # Entries are formatted together, up to about PIECE bytes, because this is faster.
        if waiting and (data is None or size >= PIECE):
            yield [_indented(waiting, depth)]
            waiting, size = [], 0
        if isinstance(value, Iterator):
            yield _written(value, depth)
    if waiting:
        yield [_indented(waiting, depth)]


def _indented(entries: list[bytes], depth: int) -> str:
    """Return the entries of a JSON list as indented text. ``entries`` has each entry as JSON. ``depth``:
    spaces before each line except the first."""
    nested = b"[" * depth + b",".join(entries) + b"]" * depth
    # Characters of the outer brackets, which are on separate lines after 0, 1, 2, ... spaces
    around = sum(range(1, depth + 1)) + depth
    text = msgspec.json.format(nested, indent=1)
    return _ascii(text[around + depth : -around].decode())


def dumps(value: Any) -> str:
    """Return ``value`` as JSON in ASCII with line ends and indents. NaN and infinities become null."""
    return _text(value) + "\n"


def compact(value: Any) -> str:
    """Return ``value`` as JSON in ASCII on one line, without spaces and without a line end."""
    return _ascii(_encoded(value).decode())


def _encodable(value: Any) -> Any:
    """Return ``value``, plain data, with each lone surrogate in its texts replaced by the replacement
    character."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_encodable(x) for x in value]
    if isinstance(value, dict):
        return {_encodable(key): _encodable(x) for key, x in value.items()}
    return value


def _paying_line(p: payers.Payer) -> contract.PayingLine:
    return contract.PayingLine.copy_of(
        p, source=p.line, compilations=len(p.compilations), recompiles=len(p.again)
    )


def _text(value: Any) -> str:
    return _ascii(msgspec.json.format(_encoded(value), indent=1).decode())


def _encoded(value: Any) -> bytes:
    """Return ``value`` as JSON in UTF-8. Lone surrogates (from file names that are not UTF-8) become the
    replacement character."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # some readers of JSON reject lone surrogates
        return msgspec.json.encode(_encodable(msgspec.to_builtins(value)))


def _ascii(text: str) -> str:
    """Return the JSON ``text`` with escapes (``\\u00e9``) for the characters that are not printable ASCII."""
    return text if text.isascii() and "\x7f" not in text else _NOT_ASCII.sub(_escaped, text)


_NOT_ASCII = re.compile(r"[^\x00-\x7e]+")  # occurs only inside strings


def _escaped(match: re.Match[str]) -> str:
    return json.dumps(match.group())[1:-1].replace("\x7f", "\\u007f")  # json.dumps does not escape DEL


def _run(run: Run, directory: RunDir | None) -> contract.RunFacts:
    meta = directory.meta if directory is not None else {}
    main = run.main
    started = main.started if main is not None else None
    argv = directory.argv if directory is not None else None
    if argv is None and started is not None:
        argv = started.argv
    exited = run.exited
    return contract.RunFacts.copy_of(
        run,
        name=directory.name if directory is not None else (started.name if started else None),
        argv=argv,
        settings=dict(directory.settings) if directory is not None else {},
        started=_moment(run, meta),
        exit_code=exited.exit_code if exited is not None else None,
        signal=exited.signal if exited is not None else None,
        recording_stopped=[
            contract.Stop(p.pid, run.seconds_at(p.stopped.t_ns), p.stopped.reason)
            for p in run.stopped
            if p.stopped is not None
        ],
        died=None
        if main is None or main.died is None
        else contract.Death.of(main.died, deaths.removed_name(run)),
        state=state(run, directory) if directory is not None else None,
        jax=started.jax if started is not None else None,
        jaxlib=started.jaxlib if started is not None else None,
        python=started.python if started is not None else None,
        devices=[contract.Device.copy_of(d) for d in run.devices],
        processes=len(run.processes),
        wall_time=None if (spent := wall_time(run)) is None else contract.WallTime.copy_of(spent),
        targets=[contract.Target.copy_of(t) for t in run.targets],
        degraded=[contract.Missing.copy_of(lost) for lost in run.degraded],
        in_progress=[
            contract.Phase(p.compilation.id, p.compilation.function.id, p.phase, run.seconds_at(p.since_ns))
            for p in run.in_progress()
        ],
    )


def _moment(run: Run, meta: dict[str, Any]) -> str | None:
    """Return when the run began, as text in ISO 8601 and UTC. Return None if that is unknown. ``meta`` is the
    content of the file ``meta.json`` in the run directory."""
    began = run.began_ns
    stamp = began / 1e9 if began else meta.get("started")
    try:
        assert isinstance(stamp, (int, float))
        moment = datetime.datetime.fromtimestamp(stamp, datetime.UTC)
    except (AssertionError, ValueError, OverflowError, OSError):  # missing, or an impossible time
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def function_json(f: Function) -> contract.Function:
    """Return the entry for the function ``f`` in the list ``functions`` of the JSON report."""
    seen = f.seen
    return contract.Function.copy_of(
        f,
        name=seen.name,
        qualname=seen.qualname,
        module=seen.module,
        file=seen.file,
        line=seen.line,
        form=seen.form,
        wrappers=list(seen.wrappers),
        captures=list(seen.captures),
        library=seen.library,
        eager=seen.eager,
        compilations=f.compiled,
    )


def compilation_json(run: Run, c: Compilation, number: int | None) -> contract.Compilation:
    """Return the entry for the compilation ``c`` in the list ``compilations`` of the JSON report. ``number``
    is its number, counted for its function: 4 in ``train_step#4``; None: the call only missed JAX's fast
    path."""
    comparison = compared(run, c)
    nearest = comparison.nearest if comparison is not None else None
    compiled, failed = c.compiled, c.failed
    return contract.Compilation.copy_of(
        c,
        function=c.function.id,
        ordinal=number,
        process_index=c.process.index,
        pid=c.process.pid,
        time_seconds=run.seconds_at(c.t_ns),
        inside=_inside(run, c),
        in_progress=c.phase,
        failed=None if failed is None else failed.phase,
        persistent_cache=compiled.persistent_cache if compiled is not None else None,
        persistent_cache_reason=compiled.persistent_cache_reason if compiled is not None else None,
        call_site=c.site,
        stack=c.missed.stack if c.missed else [],
        seconds=contract.PhaseSeconds(c.trace_seconds, c.lower_seconds, c.compile_seconds),
        key=None if c.key is None else key_json(run, c.process, c.key, c.missed),
        compared_with=nearest.id if nearest is not None else None,
        causes=[
            contract.Cause.of(cause) for cause in (comparison.causes if comparison else causes.of(run, c))
        ],
        shardings=sharding_audit.as_json(run, c),
    )


def _prediction(p: predictions.Prediction) -> contract.Prediction:
    return contract.Prediction.copy_of(
        p,
        function=p.after.function.id,
        after_compilation=p.after.id,
        step=p.after.step,
        causes=[contract.Cause.of(c) for c in p.causes],
        text=render.text(predictions.sentence(p)),
        confirmed_by=p.confirmed_by.id if p.confirmed_by is not None else None,
    )


def _total(e: ledger.Entry) -> contract.Total:
    return contract.Total.copy_of(e, function=e.function.id if e.function is not None else None)


def _stale(s: StaleCapture) -> contract.StaleCapture:
    changed = s.changed
    return contract.StaleCapture.copy_of(
        changed,
        function=s.function.id,
        where=render.text(s.where),
        after=None if s.after is None else render.text(s.after),
        variable=changed.where,
        after_compilation=f"{s.process.id}.{changed.call}",
        seen_at=changed.site,
        status=s.status,
        ended_by=f"{s.process.id}.{s.renewed.by}" if s.renewed is not None else None,
    )


def _bucket(v: observed_sizes.Varying) -> contract.Bucket:
    return contract.Bucket.copy_of(
        v,
        function=v.function.id,
        observed=list(v.observed.items()),
        choices=[contract.Padding.copy_of(c) for c in v.choices],
    )


def key_json(run: Run, process: Process, key: Key, missed: Missed | None = None) -> contract.CacheKey:
    """Return the entry of the JSON report for ``key``, the cache key of a call. ``process`` is the process
    that recorded the key. ``missed`` is the event of the call, with the lines that created the arrays among
    the arguments; None: these lines are unknown."""
    lines = missed.made if missed is not None else []
    made_by = missed.made_by if missed is not None else []

    def origin(n: int) -> Frame | None:
        return table_entry(lines, table_entry(made_by, n))

    def sharding(index: int | None) -> str | None:
        found = table_entry(key.shardings, index)
        return found.text if found is not None else None

    settings = run.settings(process, key.context)
    return contract.CacheKey.copy_of(
        key,
        arguments=[
            contract.Argument.copy_of(
                leaf,
                shape=None if leaf.shape is None else list(leaf.shape),
                sharding=sharding(leaf.sharding),
                origin=origin(n),
            )
            for n, leaf in enumerate(key.arguments)
        ],
        static=[contract.Static.copy_of(s) for s in key.static],
        nodes=dict(key.nodes),
        options=dict(key.options),
        context=None if settings is None else dict(settings),
        missing=list(key.missing),
    )


def _inside(run: Run, c: Compilation) -> str | None:
    """Return the id of the call during whose trace the call ``c`` was made. None if there is none, or if it
    is missing in the log."""
    outer = c.missed.inside if c.missed is not None else None
    found = run.compilation(c.process, outer) if outer is not None else None
    return found.id if found is not None else None
