"""Run all checks of a run: limits, programs compiled for targets (``--target``), and the comparison with a
baseline file (saved figures of an earlier run). If the program ran with several settings (``--vary``), each
setting is checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jaxscope.check import budgets, gate, limits, program_limits, target_limits, unknown
from jaxscope.check.baseline import comparison, file, update
from jaxscope.check.selection import Filter, selection
from jaxscope.errors import UsageError
from jaxscope.log import store
from jaxscope.log.store import RunDir
from jaxscope.model import deaths, sources
from jaxscope.model.load import state
from jaxscope.model.ranks import Job
from jaxscope.model.run import Run
from jaxscope.report import variants
from jaxscope.report.formats.placed import relative
from jaxscope.report.variants import Variant
from jaxscope.rules import ranks, registry
from jaxscope.schema.findings import Finding
from jaxscope.schema.messages import Count, Message, message

# Name of a limit -> the code of the rule that reports when it is exceeded.
CODES = {
    "no-recompiles-after": gate.CODE,
    "max-compilations": budgets.COMPILATIONS,
    "max-compile-seconds": budgets.SECONDS,
    "max-collectives": program_limits.COLLECTIVES,
    "max-collective-bytes": program_limits.COLLECTIVES,
    "max-temp-bytes": program_limits.MEMORY,
    "max-peak-bytes": program_limits.MEMORY,
    "max-replicated-bytes": program_limits.MEMORY,
    "max-constant-bytes": program_limits.CONSTANTS,
}


class Result(NamedTuple):
    """The result of a check.

    Attributes:
      findings: the findings.
      unchecked: errors about options that could not be checked. All other options were checked.
      baseline: the baseline file that the run was compared with; None: it was not compared.
      setting: the first setting of ``--vary``, the only one that is compared with a baseline; empty if there
        is only one setting.
    """

    findings: list[Finding]
    unchecked: list[UsageError]
    baseline: Path | None
    setting: str = ""

    def failing(self, *, strict: bool) -> list[Finding]:
        """Return the findings that make the check fail: errors and warnings, and with ``strict`` also notes,
        except notes about figures that became better. Findings that depend on measured seconds never make it
        fail."""
        return comparison.failing(self.findings, strict=strict)


class Plan:
    """All checks that the options and the configuration select.

    With a baseline file (saved figures of an earlier run), the figures are compared, and only findings of the
    rules that the file does not have are reported. Without one, all findings of the rules are reported,
    unless there is a limit and ``select`` is not given. Exceeded limits are always reported.

    Args:
      options: name of an option in ``[tool.jaxscope.check]`` -> its value.
      project: the directory of pyproject.toml; None: there is none.
    """

    def __init__(self, options: Mapping[str, Any], project: Path | None = None) -> None:
        self.options = dict(options)
        self._project = project
        self._limits = limits.of(options)
        self._functions: Mapping[str, limits.Limits] = options.get("functions") or {}

    def filter(self, run: Run | None = None) -> Filter:
        """Return the filter that decides by options and by comments in the source which findings are
        reported. Comments in notebook cells are read only with ``run``.

        Raises:
          UsageError: an option names a code that does not exist.
        """
        given = self.options
        codes = selection(
            given.get("select") or (), given.get("ignore") or (), given.get("per-file-ignores") or {}
        )
        folders = [*([str(self._project)] if self._project is not None else []), str(store.here())]
        text = sources.text if run is None else sources.now(run)
        return Filter(codes, lambda file: relative(file, folders), text)

    @property
    def baseline(self) -> Path | None:
        """Return the baseline file to compare with: the file of the option ``baseline``, or else the default
        file in the project's (or the working) directory if it exists, or else None."""
        if self.options.get("baseline") is not None:
            return Path(self.options["baseline"])
        path = self._default_baseline
        return path if path.is_file() else None

    @property
    def _default_baseline(self) -> Path:
        return (self._project or store.here()) / file.NAME

    def update_baseline(self, run: Run, directory: RunDir) -> tuple[Path, int]:
        """Write the figures of ``run`` to the baseline file of this plan, or else to the default one. Return
        (its path, the number of functions in it). Later checks of this plan compare with this file. The
        tolerances of an existing file are kept; a damaged file is overwritten.

        Raises:
          BaselineError: the environment variable CI forbids it (``file.permitted``), or the file cannot be
            written, or is another kind of file.
          UsageError: the plan selects or ignores findings by an unknown code.
          JaxscopeError: the run failed, is not complete, or compiled none of the user's functions.
        """
        path = self.baseline or self._default_baseline
        self.options["baseline"] = str(path)
        return path, update.update(path, run, state(run, directory), self.filter(run))

    def check(
        self,
        run: Run,
        directory: RunDir | None = None,
        parts: Sequence[Variant] | None = None,
        job: Job | None = None,
    ) -> Result:
        """Check ``run``, and the runs of the same program inside its directory (other settings or numbers of
        devices).

        Args:
          directory: the directory of ``run``; None: unknown, and an incomplete recording is not reported.
          parts: ``run`` and the runs inside its directory; None: load them.
          job: all processes of the job, of which ``run`` is one, to report differences between them, too.

        Raises:
          BaselineError: the baseline file cannot be read.
          UsageError: an option names a code or a target that does not exist.
        """
        chosen, path = self.filter(run), self.baseline
        every = variants.of(run, directory) if parts is None else parts
        argv = argv_of(directory)
        unchecked: list[UsageError] = []

        def check_setting(runs: Sequence[Variant]) -> list[Finding]:
            first = runs[0].run is run
            errors: list[UsageError] = unchecked if first else []
            found = self._setting([v.run for v in runs], chosen, argv, path if first else None, errors, first)
            if first:
                return found
            return found + chosen.keep(
                unknown.unchecked_note(message("setting-not-checked", error=e.message)) for e in errors
            )

        found = variants.of_each(every, check_setting)
        limited = self._limited(steps=not any(e.slug == gate.STEPS_UNKNOWN for e in unchecked))
        if path is not None or not limited or self.options.get("select"):
            known = registry.rules()
            found += chosen.unused(
                run,
                lambda code: (
                    (not known[code].needs_comparison or path is not None)
                    and (not known[code].needs_limit or limited)
                ),
            )
        if job is not None:
            found = [*ranks.without_published(found, job), *chosen.keep(ranks.findings(job))]
        found = registry.in_order(found)
        if directory is not None:
            found += _incomplete(run, directory, every)
        setting = every[0].label if len(variants.groups(every)) > 1 else ""
        return Result(found, unchecked, path, setting)

    def _limited(self, *, steps: bool) -> bool:
        """Return whether at least one limit is set. ``no-recompiles-after`` counts as a limit only if
        ``steps`` is True."""
        after = steps and self.options.get("no-recompiles-after") is not None
        return bool(after or self._limits or self._functions or self.options.get("targets"))

    def _setting(
        self,
        runs: Sequence[Run],
        chosen: Filter,
        argv: list[str],
        path: Path | None,
        unchecked: list[UsageError],
        first: bool,
    ) -> list[Finding]:
        """Return the findings about the runs with one setting of ``--vary``.

        Args:
          runs: the run with this setting, then its runs on other numbers of devices. Only in the first run,
            limits on the run and on its own programs are checked; only this run is compared.
          chosen: decides which findings are reported.
          argv: the program's command line, for hints.
          path: the baseline file to compare with; None: no comparison.
          unchecked: a list to which errors about options that cannot be checked are appended.
          first: whether this is the first setting.
        """
        run, given = runs[0], self.options
        aim = target_limits.aim(runs, given.get("target") or (), given.get("targets") or {})
        missing = target_limits.not_recorded(aim, argv)
        unchecked.extend([missing] if missing is not None else [])
        unchecked.extend(self._not_selected(chosen))
        after, late = given.get("no-recompiles-after"), []
        if after is not None:
            try:
                allow = bool(given.get("allow-cache-hits"))
                late = gate.late_after(run, after, allow_cache_hits=allow, keep=chosen.reports_at)
            except UsageError as e:
                if e.slug != gate.STEPS_UNKNOWN:
                    raise
                text = f"no recompiles after step {after}: {e.message}"
                unchecked.append(UsageError(text, hint=e.hint, slug=e.slug))
                after = None
        limited = self._limited(steps=after is not None)
        compared = self.baseline is not None
        rules = first if compared else not limited or bool(given.get("select"))
        found: list[Finding] = []
        if path is not None:
            now = comparison.extract_run(run, chosen, update.roots(path))
            found += comparison.findings(file.read(path), now, chosen)
        elif not compared and rules:
            found += chosen.keep(registry.findings(run))
        found = chosen.keep(target_limits.of_rules(aim, found, rules=rules))
        if after is not None:
            kept = chosen.keep(t.finding for t in late)
            late = [t for t in late if any(t.finding is f for f in kept)]
            counted = chosen.takes(budgets.COMPILATIONS)
            beyond = (self._limits, self._functions) if counted else (limits.Limits(), {})
            found = [*gate.without_late(found, kept), *budgets.with_counts(run, *beyond, late)]
        if limited:
            exceeded = budgets.findings(run, self._limits, self._functions, programs=not aim.names, late=late)
            found += chosen.keep(exceeded)
        return found + chosen.keep(target_limits.findings(aim, self._limits, self._functions))

    def _not_selected(self, chosen: Filter) -> list[UsageError]:
        """Return an error for each option that sets a limit whose finding cannot be reported, because
        ``select`` in ``chosen`` does not include its code. A code that ``ignore`` excludes is no error."""
        return [
            UsageError(
                f"{name} is given, but select excludes {code}, which reports it",
                hint=f"add it: --select {code}",
                slug="select-leaves-out",
            )
            for name, code in CODES.items()
            if self.options.get(name) is not None and not chosen.selects(code)
        ]


def argv_of(directory: RunDir | None) -> list[str]:
    """Return the command line of the program recorded in ``directory``, as a list of words; empty if
    unknown."""
    return (directory.argv if directory is not None else None) or []


def _incomplete(run: Run, directory: RunDir, parts: Sequence[Variant]) -> list[Finding]:
    """Return findings about why the check may be incomplete: the run has not ended (a note), the program
    failed (a warning or a note), or a recording is incomplete (an error). ``parts`` are the run and the runs
    inside its directory."""
    found = []
    died = deaths.of_run(run)
    if died is not None:
        found.append(unknown.program_failed(died.text, died.source, surely=died.surely))
    for v in parts:
        assert v.directory is not None
        text = _cut_short(v.run, v.directory)
        if text is not None:
            named = text if v.run is run else message("of-setting", setting=v.label, text=text)
            found.append(unknown.unchecked(named))
        if v.run is run and state(run, directory) == "running":
            found.append(unknown.unchecked_note(message("run-not-ended")))
    return found


def _cut_short(run: Run, directory: RunDir) -> Message | None:
    """Return a message that says why the recording of ``run`` ends before the program does; None: the
    recording is complete or still goes on, or a signal ended the program."""
    if run.stopped:
        first = run.stopped[0]
        assert first.stopped is not None
        whole = len(run.stopped) == 1 and first is run.main
        several = Count(len(run.stopped), "process", "processes")
        return message(
            "recording-stopped",
            processes=None if whole else message("of-processes", processes=several),
            reason=first.stopped.reason,
        )
    status, main = state(run, directory), run.main
    if status == "lost":
        return message("log-without-end")
    if status == "exited" and main is not None and run.main_recorded and main.ended is None:
        signal = run.exited is not None and run.exited.signal is not None
        if not signal:  # reported with the failure of the program
            return message("log-of-program-without-end")
    return None


def one_error(errors: Sequence[UsageError]) -> UsageError:
    """Return one error with the messages and hints of all ``errors`` (at least one), which are about options
    that could not be checked."""
    hint = "; ".join(e.hint for e in errors if e.hint) or None
    return UsageError(f"not checked: {'; '.join(e.message for e in errors)}", hint=hint, slug=errors[0].slug)
