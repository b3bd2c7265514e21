"""Print one part of the JSON report in a limited number of bytes (``jaxscope show``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jaxscope import __version__
from jaxscope.report import contract, drill
from jaxscope.report.bounded import cut, first_that_fit, fitted, size
from jaxscope.report.drill import Collection, Document, Entry, escaped
from jaxscope.report.json_report import SCHEMA

MOST_BYTES = 4096  # limit without --all
LIST_BYTES, NEXT_BYTES = 700, 400  # limits of each list of paths, and of the commands
LONGEST = 1 << 62


class Command(contract.Entry):
    """A command that is useful after this output, for scripts and agents that read it.

    Attributes:
      command: the command line: ``jaxscope rule JX101``.
      shows: what the command prints.
    """

    command: str
    shows: str


class Shown(contract.Entry):
    """What ``jaxscope show`` prints: the part of the JSON report at a path.

    Attributes:
      path: the path from the top of the report: ``findings/JX101/0``.
      value: the part at the path. Without ``--all``, it has at most a few kilobytes. For a list whose entries
        have names, such as ``functions``, it then has only the path and the short values of each entry.
      complete: false if ``left_out`` names parts that ``value`` lacks: keys, entries or the ends of texts.
      entries: the number of entries, if the part is a list; else null.
      left_out: paths of the parts that ``value`` lacks (the first ones if there are many). ``jaxscope show``
        accepts each of them.
      below: paths of lists elsewhere in the report that belong to this part, such as the compilations of a
        function.
      next: commands that are useful next.
    """

    schema: int
    jaxscope: str
    path: str
    value: Any
    complete: bool
    entries: int | None
    left_out: list[str]
    below: list[str]
    next: list[Command]


def show(document: Document, path: str, name: str, *, everything: bool = False) -> Shown:
    """Return the part of the report ``document`` at ``path``, in at most MOST_BYTES of JSON.

    Args:
      path: for example ``findings/JX101/0``.
      name: the name of the run, for the commands in the result.
      everything: do not limit the number of bytes (``--all``).

    Raises:
      UsageError: there is nothing at ``path``.
    """
    part = drill.follow(document, path)
    at = "/".join(escaped(s) for s in drill.segments(path))
    if size(at) > LIST_BYTES:
        at = cut(at, LIST_BYTES)
    links = [f"{at}/{escaped(link)}" for link in part.links] if isinstance(part, Entry) else []
    commands = _next(part, at, name)
    found = Shown(SCHEMA, __version__, at, None, True, _entries(part), [], links, commands)
    if everything:
        found.value = _value(part, at, LONGEST, found.left_out)
        found.complete = not found.left_out
        return found
    left_out: list[str] = []
    found.below = first_that_fit(links, LIST_BYTES)
    found.next = first_that_fit(commands, NEXT_BYTES)
    room = MOST_BYTES - size(found) - LIST_BYTES - 2
    found.value = _value(part, at, max(0, room), left_out)
    found.complete = not left_out
    found.left_out = first_that_fit(left_out, LIST_BYTES)
    return found


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of what ``jaxscope show`` prints."""
    return contract.schema_of(Shown, "jaxscope show")


def _entries(report_part: Any) -> int | None:
    """Return the number of entries of a part of the report; None if the part is not a list."""
    if isinstance(report_part, Entry):
        return len(report_part.value) if isinstance(report_part.value, list) else None
    return len(report_part.names) if isinstance(report_part, Collection) else None


def _value(report_part: Any, path: str, room: int, left_out: list[str]) -> Any:
    """Return what ``jaxscope show`` prints of a part of the report: plain data of about ``room`` bytes
    (LONGEST: all of it), for a list with names only the path and short values of each entry. The paths of
    what does not fit are appended to ``left_out``."""
    if isinstance(report_part, Entry):
        return fitted(report_part.value, room, path, left_out)
    if room == LONGEST:
        return _whole(report_part)
    if isinstance(report_part, Document):
        return [{"path": f"{path}/{name}".lstrip("/")} for name in report_part.names]
    kept = first_that_fit(_listed(report_part, path), room - 2)
    left_out += [f"{path}/{escaped(name)}" for name in report_part.names[len(kept) :]]
    return kept


def _listed(report_part: Collection, path: str) -> Iterator[dict[str, Any]]:
    """Yield a dict for each entry of ``report_part``, a list in the report: the entry's path, and those of
    its values that are numbers or texts, shortened to 400 bytes. For an entry that is itself a list, it has
    path and length."""
    for name in report_part.names:
        at = f"{path}/{escaped(name)}"
        entry = report_part.entry(name)
        if isinstance(entry, Collection):
            yield {"path": at, "entries": len(entry.names)}
        elif isinstance(entry, Entry) and isinstance(entry.value, dict):
            short = {
                k: v for k, v in entry.value.items() if not isinstance(v, (dict, list)) and v is not None
            }
            yield {"path": at, **fitted(short, 400, at, [])}
        else:
            yield {"path": at}


def _whole(report_part: Any) -> Any:
    """Return a part of the report as plain data, with all parts below it."""
    if isinstance(report_part, Entry):
        return report_part.value
    if isinstance(report_part, Document):
        return {name: _whole(report_part.child(name)) for name in report_part.names}
    return [_whole(report_part.entry(name)) for name in report_part.names]


def _next(report_part: Any, path: str, name: str) -> list[Command]:
    """Return commands that are useful after a finding: to print its evidence, and the page of its rule.
    Return an empty list if ``report_part`` is not a finding. ``path`` is the path of ``report_part``,
    ``name`` the name of the run."""
    value = report_part.value if isinstance(report_part, Entry) else None
    if not isinstance(value, dict) or "code" not in value or "fix_kind" not in value:
        return []
    commands = []
    for n, e in enumerate(value["evidence"]):
        key = next((key for key in ("compilation", "program") if e[key] is not None), None)
        if key is not None:
            what = (
                "the call that missed the cache, with its causes" if key == "compilation" else "the program"
            )
            commands.append(Command(f"jaxscope show {name} {path}/evidence/{n}/{key}", what))
            break
    return [*commands, Command(f"jaxscope rule {value['code']}", "the rule, with a program before and after")]
