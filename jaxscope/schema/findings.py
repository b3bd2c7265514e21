"""What is concluded from a run: causes, findings and how sure they are.

Conclusions are never in the log; they are made when a run is read.
"""

from __future__ import annotations

import msgspec

from jaxscope.schema.keys import Frame

CERTAIN, LIKELY = "certain", "likely"
ERROR, WARNING, NOTE = "error", "warning", "note"


class Cause(msgspec.Struct, frozen=True, gc=False):
    """Why a call was not served from a cache.

    Attributes:
      kind: a word of the table of causes (``shape``, ``static_value``, ``new_function``, ...).
      level: the cache that the difference misses: trace, lower, compile or fast_path.
      path: the argument, by the user's names; ``context`` for the mesh around the call; a setting's name
        for ``config``; None where it belongs to no single place.
      before, after: the two values as text; None where there is none.
      certainty: certain or likely.
      text: one clause that can follow a colon, without the path's own sentence around it.
      count: leaves this one stands for; ``path`` is then what they have in common.
    """

    kind: str
    level: str
    path: str | None
    before: str | None
    after: str | None
    certainty: str
    text: str
    count: int = 1


class Evidence(msgspec.Struct, frozen=True, gc=False):
    """Where a finding can be seen: a compilation, a program or a line, and what is there; ``step``: when."""

    text: str
    compilation: str | None = None
    program: str | None = None
    source: Frame | None = None
    step: int | None = None


class Finding(msgspec.Struct, frozen=True, gc=False):
    """One thing worth doing something about.

    Attributes:
      code: the rule's (``JX101``).
      severity: error, warning or note.
      certainty: certain or likely.
      title: one sentence that names the thing.
      function: id of the function it is about.
      source: the user's line to look at.
      seconds: what it cost so far, where that is known.
      fix: what to do, in one clause; tested.
      path: the argument or array it is about, by the user's names, where it is about one.
      targets: machines that are not there whose programs it is true of, whether or not of the program that ran.
      settings: those of ``--vary`` under which it was found, where the program was run under several.
    """

    code: str
    severity: str
    certainty: str
    title: str
    function: str | None = None
    source: Frame | None = None
    evidence: list[Evidence] = []
    fix: str | None = None
    seconds: float | None = None
    path: str | None = None
    targets: list[str] = []
    settings: list[str] = []
