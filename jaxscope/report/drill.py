"""Find one part of the JSON report by its path (``jaxscope show``), for example
``functions/train_step/compilations/2/key``.

Mostly, only the parts on the path are computed, by the functions that also make the whole report.

A path consists of segments between ``/``. A segment is a key, a position in a list, or a name: of a function
(``train_step``, ``train.py:88``), a compilation (``train_step#2``; below a function only ``2``), a program
(the beginning of its id) or a finding (its id, or the code of its rule with a position as the next segment).
If the value of a key is the id of another entry, the path continues in that entry:
``.../program/collectives``. In a key, ``/`` is written ``~1`` and ``~`` is written ``~0``, as in a JSON
Pointer.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any

import msgspec

from jaxscope.analysis.grouping import grouped
from jaxscope.errors import UsageError
from jaxscope.log.store import RunDir
from jaxscope.model.function_lookup import find_compilations, find_functions
from jaxscope.model.ranks import Job
from jaxscope.model.records import Compilation, Function, Program
from jaxscope.model.run import Run
from jaxscope.report import contract, json_report, targets, variants
from jaxscope.report.programs import program_json

# Key whose value is an id -> the list of the report that has the entry with this id.
REFERENCES = {
    "function": "functions",
    "program": "programs",
    "of": "programs",
    "compilation": "compilations",
    "compilations": "compilations",
    "compared_with": "compilations",
    "after_compilation": "compilations",
    "confirmed_by": "compilations",
    "ended_by": "compilations",
    "inside": "compilations",
}
NAMED = 8  # names that a hint lists


class Collection:
    """A list in the report whose entries have names. An entry is only computed when it is requested.

    Args:
      names: the names of the entries, in the order of the report.
      entry: takes the name of an entry and returns the entry; if there is none, it returns None or raises
        UsageError. It may accept other texts than those in ``names``, such as the id of a function.
    """

    def __init__(self, names: Sequence[str], entry: Callable[[str], Any]) -> None:
        self.names = names
        self.entry = entry


class Entry:
    """A part of the JSON report. It may have links to lists elsewhere in the report: a function, for example,
    has a link to its compilations.

    Attributes:
      value: the part as plain data.
      links: name of a linked list -> a function that returns this list as a Collection.
    """

    def __init__(self, value: Any, links: dict[str, Callable[[], Collection]] | None = None) -> None:
        self.value = msgspec.to_builtins(value)
        self.links = links or {}


class Document:
    """The JSON report of one run, whose parts are only computed when they are requested.

    Args:
      directory: the directory of the run; None: unknown. The report then lacks the settings of ``run
        --vary``, the runs with other settings, and the program's ``state``.
      job: all processes that were recorded together, of which ``run`` is one; None: ``run`` is the only one.
    """

    def __init__(self, run: Run, directory: RunDir | None = None, job: Job | None = None) -> None:
        self._run, self._directory, self._job = run, directory, job
        self.names: Sequence[str] = contract.Report.__struct_fields__
        self._findings: list[contract.Finding] | None = None

    def child(self, name: str) -> Any:
        """Return the part of the report with the key ``name``: a Collection for lists whose entries have
        names (``functions``, ``findings``), else an Entry. None if the report has no such key."""
        special: dict[str, Callable[[], Collection]] = {
            "functions": self._functions,
            "compilations": self._compilations,
            "programs": self._programs,
            "findings": self._found,
            "sub_runs": self._sub_runs,
        }
        if name in special:
            return special[name]()
        if name not in self.names:
            return None
        found = json_report.sections(self._run, self._directory, self._job)
        value = next(value for key, value in found if key == name)
        # A part that was not recorded is null: an empty Entry distinguishes it from a missing key.
        return Entry([*value] if isinstance(value, Iterator) else value)

    def by_id(self, section: str, name: str) -> Any:
        """Return the entry with the id ``name`` in the list ``section`` of the report (functions,
        compilations or programs). Return None if no entry has this id."""
        known: dict[str, Container[str]] = {
            "functions": self._run.functions,
            "compilations": self._run.compilations,
            "programs": {**self._run.programs, **self._run.retargeted},
        }
        return self.child(section).entry(name) if name in known[section] else None

    def sub_run(self, number: int) -> Document:
        """Return the report of a sub-run (the same program with other settings or another number of devices).
        ``number`` is its position in the list ``sub_runs`` of the report, from 0."""
        part = variants.of(self._run, self._directory)[number + 1]
        return Document(part.run, part.directory)

    def findings(self) -> list[contract.Finding]:
        """Return all findings, in the order of the report."""
        if self._findings is None:
            parts = variants.of(self._run, self._directory)
            self._findings = [*json_report.findings(parts, self._job)]
        return self._findings

    def function_name(self, f: Function) -> str:
        """Return a name for ``f`` that is valid in a path of ``jaxscope show``. It is the function's name if
        ``f`` is the user's and no other function has this name; else it is the id."""
        name = f.display_name
        alone = [g for g in self._run.functions.values() if g.display_name == name] == [f]
        return name if alone and f.user else f.id

    def _functions(self) -> Collection:
        every = sorted(self._run.functions.values(), key=lambda f: (-f.seconds, f.id))
        return Collection([self.function_name(f) for f in every], self._function)

    def _function(self, name: str) -> Entry:
        """Return the entry of the function called ``name`` (a name, an id or ``train.py:88``).

        Raises:
          UsageError: no function, or more than one, has this name.
        """
        found = find_functions(self._run, name)
        if len(found) > 1:
            names = ", ".join(escaped(f.id) for f in found[:NAMED])
            raise UsageError(
                f"{name!r} means {len(found):,} functions",
                hint=f"give one of: {names}",
                slug="several-functions",
            )
        return self.function(found[0])

    def function(self, f: Function) -> Entry:
        """Return the report's entry of the function ``f``, with links to the lists of its compilations,
        programs and findings."""
        numbered = dict(self._run.numbered(f))
        programs = dict.fromkeys(c.program for c in f.compilations if c.program in self._run.programs)
        return Entry(
            json_report.function_json(f),
            {
                "compilations": lambda: Collection(
                    [str(n) for n in numbered],
                    lambda text: self._compilation(numbered.get(int(text) if text.isdecimal() else 0)),
                ),
                "programs": lambda: Collection([p[:12] for p in programs if p], self._program),
                "findings": lambda: self._some_findings([x for x in self.findings() if x.function == f.id]),
            },
        )

    def _compilations(self) -> Collection:
        every = sorted(self._run.compilations.values(), key=lambda c: (c.t_ns, c.process.pid, c.call))
        return Collection([c.id for c in every], self._compilation_named)

    def _compilation_named(self, name: str) -> Entry | None:
        """Return the entry of the compilation with the id ``name``, or with a name such as ``train_step#2``.
        None if there is none."""
        if name in self._run.compilations:
            return self._compilation(self._run.compilations[name])
        functions, number = find_compilations(self._run, name)
        return self._compilation(dict(self._run.numbered(functions[0])).get(number or 0))

    def _compilation(self, c: Compilation | None) -> Entry | None:
        return None if c is None else Entry(json_report.compilation_json(self._run, c, self._run.number(c)))

    def _programs(self) -> Collection:
        return Collection([*sorted(self._run.programs), *sorted(self._run.retargeted)], self._program)

    def _program(self, name: str) -> Entry | None:
        """Return the entry of the program whose id is ``name`` or begins with it. None if there is none, or
        more than one."""
        known: dict[str, Program] = {**self._run.retargeted, **self._run.programs}
        found = (
            [known[name]] if name in known else [p for i, p in known.items() if name and i.startswith(name)]
        )
        if len(found) != 1:
            return None
        p = found[0]
        here = self._run.programs.get(p.id) is p
        return Entry(program_json(p, self._run.texts_of(p)) if here else targets.program_json(self._run, p))

    def _found(self) -> Collection:
        """Return the list ``findings``. Its names are the codes of rules, each of which leads to the list of
        the rule's findings. A finding's id and its position in the whole list are accepted, too."""
        by_code = grouped((f.code, f) for f in self.findings())
        numbered = self._some_findings(self.findings())

        def entry(name: str) -> Any:
            if name in by_code:
                return self._some_findings(by_code[name])
            return next((Entry(f) for f in self.findings() if f.id == name), None) or numbered.entry(name)

        return Collection([*by_code], entry)

    def _some_findings(self, findings: Sequence[contract.Finding]) -> Collection:
        """Return ``findings`` as a list whose names are the positions, from 0."""

        def entry(name: str) -> Entry | None:
            return Entry(findings[int(name)]) if name.isdecimal() and int(name) < len(findings) else None

        return Collection([str(n) for n in range(len(findings))], entry)

    def _sub_runs(self) -> Collection:
        number = len(variants.of(self._run, self._directory)) - 1

        def entry(name: str) -> Document | None:
            return self.sub_run(int(name)) if name.isdecimal() and int(name) < number else None

        return Collection([str(n) for n in range(number)], entry)


def finding_paths(findings: Sequence[contract.Finding]) -> list[str]:
    """Return a path for each of ``findings``, all findings of a report in order: ``findings/JX101/0`` for the
    first finding of the rule JX101."""
    seen: dict[str, int] = {}
    paths = []
    for f in findings:
        n = seen.get(f.code, 0)
        seen[f.code] = n + 1
        paths.append(f"findings/{f.code}/{n}")
    return paths


def escaped(segment: str) -> str:
    """Return a key or name as one segment of a path in the report: ``a/b`` -> ``a~1b``."""
    return segment.replace("~", "~0").replace("/", "~1")


def segments(path: str) -> list[str]:
    """Return the keys and names in a path of ``jaxscope show``: ``functions/a~1b`` -> ``["functions",
    "a/b"]``."""
    return [s.replace("~1", "/").replace("~0", "~") for s in path.split("/") if s]


def follow(document: Document, path: str) -> Any:
    """Return the part of the report ``document`` to which ``path`` leads: a Document, a Collection or an
    Entry. Where the path leads to the id of another entry (``.../program``), it goes on in that entry.

    Raises:
      UsageError: there is nothing at ``path``; the hint lists what can follow the last part that exists.
    """
    part: Any = document
    done: list[str] = []
    key = ""
    for segment in segments(path):
        if isinstance(part, Document):
            document = part
        elif (
            isinstance(part, Entry) and isinstance(part.value, dict) and part.value.get("sub_run") is not None
        ):
            document = document.sub_run(part.value["sub_run"])
        key = key if segment.isdecimal() else segment
        found = _child(part, segment)
        if found is None:
            raise UsageError(
                f"there is no {segment!r} below {'/'.join(done) or 'the report'}",
                hint=_there_are(below(part)),
                slug="no-such-path",
            )
        if isinstance(found, Entry) and isinstance(found.value, str) and key in REFERENCES:
            found = document.by_id(REFERENCES[key], found.value) or found
        done.append(escaped(segment))
        part = found
    return part


def _child(report_part: Any, segment: str) -> Any:
    """Return the part of the report directly below ``report_part`` with the key or name ``segment``. None if
    there is none."""
    if isinstance(report_part, Document):
        return report_part.child(segment)
    if isinstance(report_part, Collection):
        return report_part.entry(segment)
    if segment in report_part.links:
        return report_part.links[segment]()
    if isinstance(report_part.value, dict):
        return Entry(report_part.value[segment]) if segment in report_part.value else None
    if isinstance(report_part.value, list) and segment.isdecimal() and int(segment) < len(report_part.value):
        return Entry(report_part.value[int(segment)])
    return None


def below(report_part: Any) -> Sequence[str]:
    """Return what can follow ``report_part`` in a path of ``jaxscope show``: after ``functions/train_step``
    the keys ``name``, ``compilations`` and so on. ``report_part`` is the whole report (Document), a list with
    named entries (Collection) or another part (Entry)."""
    if isinstance(report_part, (Document, Collection)):
        return report_part.names
    if isinstance(report_part.value, dict):
        return list(dict.fromkeys([*report_part.value, *report_part.links]))
    return [str(n) for n in range(len(report_part.value))] if isinstance(report_part.value, list) else []


def _there_are(names: Sequence[str]) -> str:
    if not names:
        return "nothing is below it"
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f"there are: {', '.join(map(escaped, names[:NAMED]))}{more}"
