"""Decide which findings are reported. Options select codes and exclude files, and a comment on the user's
line can exclude a finding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

import msgspec

from jaxscope.analysis import ignores
from jaxscope.analysis.ignores import Ignore
from jaxscope.errors import UsageError
from jaxscope.model import sources
from jaxscope.model.run import Run
from jaxscope.rules import registry
from jaxscope.schema.findings import CERTAIN, NOTE, Evidence, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Message, message

UNUSED = "JX902"
ALL = "ALL"


class Selection(msgspec.Struct, frozen=True):
    """The codes of findings to report. Each code in the attributes may be a prefix: ``JX1`` means ``JX101``,
    ``JX102``, ...

    Attributes:
      select: codes to report; empty: all.
      ignore: codes not to report.
      per_file: pairs (pattern of file names, codes not to report in these files).
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def takes(self, code: str) -> bool:
        """Return whether ``select`` and ``ignore`` allow findings with ``code``. If both ``select`` and
        ``ignore`` have a prefix of ``code``, the longer prefix wins; if both have the same length, ``ignore``
        wins."""
        chosen = _longest(self.select, code) if self.select else 0
        return chosen is not None and ((left := _longest(self.ignore, code)) is None or chosen > left)


def selection(
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    per_file: Mapping[str, Iterable[str]] | None = None,
) -> Selection:
    """Parse the options that select codes of findings. Each entry may be a code (``JX101``), a prefix
    (``JX1``), the name of a rule (``changing-shape``) or ``ALL``.

    Args:
      select: codes to report; empty: all.
      ignore: codes not to report.
      per_file: pattern of file names -> codes not to report in these files.

    Raises:
      UsageError: there is no such code or rule; the hint names the nearest one.
    """
    return Selection(
        tuple(_known(c, "--select") for c in select),
        tuple(_known(c, "--ignore") for c in ignore),
        tuple(
            (pattern, tuple(_known(c, f"per-file-ignores of {pattern!r}") for c in codes))
            for pattern, codes in (per_file or {}).items()
        ),
    )


def _known(text: str, where: str) -> str:
    """Return the prefix of codes that ``text`` means: ``"jx1"`` -> ``"JX1"``, ``"changing-shape"`` ->
    ``"JX101"``, ``"ALL"`` -> ``""``. ``where`` names the option in the error.

    Raises:
      UsageError: there is no such code or rule.
    """
    rules = registry.rules()
    wanted = text.strip().upper()
    if wanted == ALL:
        return ""
    named = {r.name.upper(): r.code for r in rules.values()}
    if wanted in named:
        return named[wanted]
    if wanted and any(code.startswith(wanted) for code in rules):
        return wanted
    raise UsageError(f"{where}: there is no rule {text!r}", hint=registry.nearest(text), slug="no-such-rule")


def _longest(codes: Sequence[str], code: str) -> int | None:
    """Return the length of the longest of ``codes`` that is a prefix of ``code``; None: none of them is."""
    return max((len(c) for c in codes if code.startswith(c)), default=None)


class Filter:
    """Decides by code, file and comments in the source which findings are reported, and remembers which
    comments excluded a finding.

    Args:
      chosen: the selected codes.
      relative: takes a file name and returns it relative to the project's directory, with ``/``.
      text: takes a file name and returns the contents of the file; None: it cannot be read.
    """

    def __init__(
        self,
        chosen: Selection,
        relative: Callable[[str], str] = str,
        text: Callable[[str], str | None] = sources.text,
    ) -> None:
        self._chosen = chosen
        self._relative = relative
        self._text = text
        self._comments: dict[str, list[Ignore]] = {}
        self._used: dict[tuple[str, int], set[str]] = {}

    def selects(self, code: str) -> bool:
        """Return whether the option ``select`` includes ``code``; an empty ``select`` includes all. The
        option ``ignore`` is not considered."""
        return not self._chosen.select or _longest(self._chosen.select, code) is not None

    def takes(self, code: str) -> bool:
        """Return whether the options ``select`` and ``ignore`` allow findings with ``code``. Their file and
        line are not considered."""
        return self._chosen.takes(code)

    def keep(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return those of ``findings`` that no option and no comment excludes. Comments that excluded a
        finding are remembered for ``unused``."""
        return [f for f in findings if self.reports_at(f.code, f.source)]

    def reports_at(self, code: str, source: Frame | None) -> bool:
        """Return whether neither an option nor a comment excludes a finding with ``code`` on the user's line
        ``source``. If a comment excludes it, remember the comment for ``unused``. ``source`` None: the line
        is unknown, and only ``select`` and ``ignore`` are considered."""
        if not self._chosen.takes(code) or source is None:
            return self._chosen.takes(code)
        path = self._relative(source.file)
        for pattern, codes in self._chosen.per_file:
            named = (path, path.rpartition("/")[2], source.file)
            if any(fnmatchcase(n, pattern) for n in named) and any(code.startswith(c) for c in codes):
                return False
        kept = True
        for comment in self._of(source.file):
            if comment.first <= source.line <= comment.last and _covers(comment, code):
                self._used.setdefault((source.file, comment.line), set()).add(code)
                kept = False
        return kept

    def _of(self, file: str) -> list[Ignore]:
        """Return the ``# jaxscope: ignore`` comments in ``file``; empty if the file cannot be read."""
        if file not in self._comments:
            source = self._text(file)
            # Most files have no such comment, and are not parsed.
            found = source is not None and "jaxscope" in source
            self._comments[file] = ignores.find(source) if found and source is not None else []
        return self._comments[file]

    def unused(self, run: Run, looked_at: Callable[[str], bool] = lambda _: True) -> list[Finding]:
        """Return notes (JX902) about ``# jaxscope: ignore`` comments in the user's files of ``run``: comments
        that excluded no finding, and comments with a code that excluded none, does not exist or is missing.
        Call this method after all findings have passed the filter.

        ``looked_at`` takes a code and returns whether this check can report it; comments for other codes are
        not reported.
        """
        found = []
        for file in sorted(_files(run)):
            for comment in self._of(file):
                text = self._unused(comment, self._used.get((file, comment.line), set()), looked_at)
                if text is not None:
                    source = Frame(file, comment.line, "")
                    evidence, fix = [Evidence(text, source=source)], Fix(message("fix-remove-comment"))
                    found.append(Finding(UNUSED, NOTE, CERTAIN, text, None, source, evidence, fix))
        return [f for f in found if self._chosen.takes(f.code)]

    def _unused(self, comment: Ignore, used: set[str], looked_at: Callable[[str], bool]) -> Message | None:
        """Return the text of the note of ``unused`` about ``comment``; None: it needs no note. ``used`` has
        the codes of the findings that the comment excluded."""
        if comment.codes is None:
            # The comment may exclude codes that are not selected in this check.
            everything = not self._chosen.select and not self._chosen.ignore
            return None if used or not everything else message("comment-excludes-nothing")
        if not comment.codes:
            return message("comment-without-code")
        known = registry.rules()
        for code in comment.codes:
            if not any(k.startswith(code) for k in known):
                return message("comment-of-no-rule", code=code, hint=registry.nearest(code))
        idle = [
            c
            for c in comment.codes
            if not any(u.startswith(c) for u in used)
            and any(k.startswith(c) and self._chosen.takes(k) and looked_at(k) for k in known)
        ]
        return message("codes-exclude-nothing", codes=", ".join(idle)) if idle else None


def _covers(comment: Ignore, code: str) -> bool:
    return comment.codes is None or any(code.startswith(c) for c in comment.codes)


def _files(run: Run) -> set[str]:
    """Return the names of the files that define a function of the user, or contain the line of a recorded
    call or of an operation outside jit. If no line of the user made the call, this is a line of an installed
    package."""
    functions = {f.seen.file for f in run.functions.values() if f.user and f.seen.file}
    sites = {c.site.file for c in run.compilations.values() if c.site is not None}
    return functions | sites
