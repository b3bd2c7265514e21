"""What was said of a case against its label. Knows nothing of JAX: both are plain data."""

import re
from typing import Any, NamedTuple


class Verdict(NamedTuple):
    """What is right of what was said. ``said`` is for people; ``extra`` counts causes beyond those of the label."""

    kind: bool = False
    level: bool = False
    path: bool = False
    line: bool = False  # blame lands in the program's own file
    unknown: bool = False
    extra: int = 0
    said: str = ""

    @property
    def right(self) -> bool:
        return self.kind and self.level and self.path


def allowed(wanted: Any, said: Any) -> bool:
    return said in wanted if isinstance(wanted, tuple) else said == wanted


def judge(case: Any, compilations: list[dict[str, Any]], file: str) -> Verdict:
    """``compilations`` are those of the case's function during the measured call, as the report's JSON has them.

    ``file`` is the one the call is written in.
    """
    if not case.causes:
        quiet = not compilations
        return Verdict(quiet, quiet, quiet, True, said="; ".join(told(c) for c in compilations))
    if not compilations:
        return Verdict(said="no such compilation is reported")
    outer = [c for c in compilations if c["inside"] is None] or compilations
    chosen = outer[0]
    causes = chosen["causes"] or []
    site = chosen["call_site"] or {}
    verdict = Verdict(line=site.get("file") == file, said=told(chosen))
    if not causes:
        return verdict
    if case.persistent is not None and chosen["persistent_cache"] != case.persistent:
        return verdict._replace(said=f"persistent cache: {chosen['persistent_cache']}; {verdict.said}")
    # Every true cause has to be there; the decisive one first, unless all are of one level.
    first, level = causes[0], case.causes[0].level
    leading = case.causes if all(c.level == level for c in case.causes) else case.causes[:1]
    decisive = next((c for c in leading if agrees(c, first)), leading[0])
    found = [next((s for s in causes if agrees(c, s)), None) for c in case.causes]
    rest = all(f is not None for c, f in zip(case.causes, found, strict=True) if c is not decisive)
    return verdict._replace(
        kind=allowed(decisive.kind, first["kind"]) and rest,
        level=allowed(decisive.level, first["level"]),
        path=allowed(decisive.path, first["path"]) and (decisive.before is None or decisive.before in str(first["before"])),
        unknown=first["kind"] == "unknown",
        extra=sum(s not in found for s in causes),
    )


def agrees(cause: Any, said: dict[str, Any]) -> bool:
    return all(allowed(getattr(cause, part), said[part]) for part in ("kind", "level", "path"))


def told(compilation: dict[str, Any]) -> str:
    causes = compilation["causes"]
    if causes is None:
        return f"causes are null, reached {', '.join(compilation['reached'])}"
    said = [f"{c['kind']} / {c['level']} / {c['path']}: {c['before']} -> {c['after']}" for c in causes]
    return f"[{', '.join(compilation['reached'])}] " + " | ".join(said)


def wanted(case: Any) -> str:
    if not case.causes:
        return "a hit: nothing"
    return " | ".join(f"{one(c.kind)} / {one(c.level)} / {one(c.path)}" + (f" before {c.before}" if c.before else "") for c in case.causes)


def one(words: Any) -> str:
    return " or ".join(map(str, words)) if isinstance(words, tuple) else str(words)


def explained(case: Any, log: str) -> bool | None:
    """Does the log of JAX's own explainer name the true cause? None: it said nothing."""
    text = "\n".join(line for line in log.splitlines() if line.strip())
    if not text:
        return None
    return bool(case.says) and all(re.search(pattern, text, re.IGNORECASE | re.DOTALL) for pattern in case.says)
