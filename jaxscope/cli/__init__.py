"""The command line of jaxscope: find the module of a command, call its handler, and turn errors into a
message and an exit code.

This is the only module that calls sys.exit. The module of a command is imported only when the user runs this
command.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import importlib
import itertools
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from jaxscope import __version__
from jaxscope.cli.help import Help
from jaxscope.errors import JaxscopeError, UsageError

UNNAMED = ("error", "usage", "internal")  # slugs that many errors share: they are not printed
MAX_WORDS = 300  # characters of an internal error that are printed
INTERRUPTED, BROKEN_PIPE, USAGE = 130, 141, 2

# (verb, purpose, example), in groups. Each verb is a module of this package.
VERBS: dict[str, list[tuple[str, str, str]]] = {
    "Record a program": [
        (
            "run",
            "run a program as python would, and record what JAX compiles",
            "jaxscope run train.py --lr 0.1",
        ),
        (
            "launch",
            "start the processes of one job on this machine, and record them",
            "jaxscope launch -n 4 train.py",
        ),
        (
            "compile",
            "compile a function for an accelerator you don't have",
            "jaxscope compile train.py:step --target v5e:4x4 --args shapes",
        ),
    ],
    "See what happened": [
        ("report", "print what was compiled, how long it took and why it recompiled", "jaxscope report"),
        (
            "show",
            "print one part of the JSON report; give its path",
            "jaxscope show latest findings/JX101/0",
        ),
        ("view", "open a run in the terminal interface", "jaxscope view"),
        ("hlo", "analyze an HLO text file, from any source", "jaxscope hlo step.hlo.txt --mesh data=8"),
        (
            "dump",
            "write StableHLO, HLO and cache keys as files",
            "jaxscope dump latest train_step -o out",
        ),
        ("diff", "compare two runs, or two compilations", "jaxscope diff train-1 latest"),
        (
            "try",
            "run a program before and after a patch: better, worse or equal",
            "jaxscope try --patch FIX.diff train.py",
        ),
    ],
    "Check in CI": [
        (
            "check",
            "check recompiles, limits and a baseline; the exit code is the result",
            "jaxscope check --no-recompiles-after 2",
        ),
    ],
    "Manage": [
        ("runs", "list recorded runs, remove old ones", "jaxscope runs gc --keep 20"),
        (
            "targets",
            "list the accelerators to compile for: memory, bandwidth, speed",
            "jaxscope targets",
        ),
        ("skill", "print instructions for a coding agent (a SKILL.md file)", "jaxscope skill"),
        ("rule", "explain a finding and how to fix it", "jaxscope rule JX101"),
        ("doctor", "print versions, and what jaxscope can record with the installed JAX", "jaxscope doctor"),
    ],
}
FORMATS = ("--format", "--output-format")
MEANT = {"watch": "view", "tui": "view", "record": "run"}  # other words for commands
TAKES_A_PROGRAM = ("run", "launch", "try")
HIDDEN = {"_follow": "run"}  # verb -> the module that adds it
_MODULES = {verb: verb for group in VERBS.values() for verb, _, _ in group} | HIDDEN | {"try": "trial"}


class Parser(argparse.ArgumentParser):
    """An argument parser that raises UsageError instead of ending the process, and formats help for the width
    of the terminal."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("formatter_class", Help)
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(*args, **kwargs)

    def error(self, message: str) -> NoReturn:
        wrong = message.removeprefix("unrecognized arguments: ")
        options = [o for action in self._actions for o in action.option_strings]
        near = difflib.get_close_matches(wrong.split(" ")[0], options, 1) if wrong != message else []
        hint = f"did you mean {near[0]}?" if near else f"see: {self.prog} --help"
        verb = self.prog.removeprefix("jaxscope").strip()
        raise UsageError(f"{verb}: {message}" if verb else message, hint=hint, slug="usage")


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command line ``argv`` (default: the command line of this process), and end this process with
    the exit code of ``command``."""
    os.environ.pop("JAXSCOPE", None)  # jaxscope's own command line does not record itself
    sys.exit(command(sys.argv[1:] if argv is None else list(argv)))


def command(argv: list[str]) -> int:
    """Run the command line ``argv`` and return its exit code. Errors are printed, not raised; their exit code
    is 2. After Ctrl-C, return 130; if the reader of stdout has closed it, return 141."""
    from jaxscope.report.console import replace_unencodable

    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            replace_unencodable(stream)
    try:
        try:
            code = _dispatch(argv)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
        return code
    except JaxscopeError as e:
        _complain(e, argv)
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_stdout()  # the reader went away (`| head`)
        return BROKEN_PIPE
    except OSError as e:
        if e.filename is not None:
            return _unexpected(e, argv)
        _drop_stdout()
        _complain(JaxscopeError(f"the output cannot be written: {e.strerror or e}", slug="unwritable"), argv)
        return USAGE
    except Exception as e:
        return _unexpected(e, argv)


def _unexpected(e: Exception, argv: Sequence[str]) -> int:
    """Print ``e``, an internal error of jaxscope, on stderr: as JSON if ``argv`` requests JSON, else as text.
    Return exit code 2, because 1 is the code of ``jaxscope check`` for findings."""
    if os.environ.get("JAXSCOPE_DEBUG") == "1":
        import traceback

        with contextlib.suppress(OSError, ValueError, AttributeError):
            traceback.print_exception(e)
    if isinstance(e, MemoryError):
        _complain(JaxscopeError("not enough memory for this command", slug="memory"), argv)
        return USAGE
    words = " ".join(f"{type(e).__name__}: {e}".split())[:MAX_WORDS]
    verb = argv[0] if argv else ""
    hint = (
        f"please report it to jaxscope's maintainers, with what JAXSCOPE_DEBUG=1 jaxscope {verb} ... prints"
    )
    _complain(JaxscopeError(f"internal error: {words}", hint=hint, slug="internal"), argv)
    return USAGE


def _drop_stdout() -> None:
    # Otherwise Python prints the error again at exit, when it flushes stdout.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch(argv: list[str]) -> int:
    """Run the command that ``argv`` names, and return its exit code. Without a command, print the overview
    and return 2.

    Raises:
      JaxscopeError: there is no such command, or its handler raised the error.
    """
    first = argv[0] if argv else ""
    if not argv:
        sys.stderr.write(overview() + "\n")
        return USAGE
    if first in ("-h", "--help", "help") and len(argv) < 2:
        print(overview())  # noqa: T201
        return 0
    if first == "help":
        argv = [argv[1], "--help"]
        first = argv[0]
    if first in ("-V", "--version", "version"):
        print(f"jaxscope {__version__}")  # noqa: T201
        return 0
    if first not in _MODULES:
        raise UsageError(f"there is no command {first!r}", hint=_instead(argv), slug="no-such-command")
    parser = Parser(prog="jaxscope", add_help=False)
    subparsers = parser.add_subparsers(dest="verb", parser_class=Parser)
    importlib.import_module(f"jaxscope.cli.{_MODULES[first]}").add_parser(subparsers)
    try:
        # The verb's own parser, so that errors have its usage.
        args = subparsers.choices[first].parse_args(argv[1:])
    except SystemExit as e:  # --help
        return e.code if isinstance(e.code, int) else 0
    return int(args.handler(args))


def overview() -> str:
    """Return the page that ``jaxscope --help`` prints."""
    lines = ["jaxscope: see why JAX recompiled, and what program XLA produced.", ""]
    for title, verbs in VERBS.items():
        lines.append(title)
        for verb, what, example in verbs:
            lines += [f"  {verb:<8} {what}", f"           $ {example}"]
        lines.append("")
    lines += [
        "To begin, write jaxscope run instead of python:",
        "  $ jaxscope run train.py",
        "  $ jaxscope report",
        "",
        "jaxscope <command> --help describes each command. Runs are kept in .jaxscope/runs",
        "(or $JAXSCOPE_HOME).",
    ]
    return "\n".join(lines)


def _instead(argv: list[str]) -> str:
    word = argv[0]
    verbs = [v for v in _MODULES if v not in HIDDEN]
    if (word.startswith("-") and word[:2] in ("-m", "-c")) or word.endswith(".py"):
        return "to record it: jaxscope run " + " ".join(argv[:3])
    meant = MEANT.get(word.casefold())
    near = [meant] if meant is not None else difflib.get_close_matches(word.casefold(), verbs, 1, 0.5)
    if not near:
        near = [v for v in verbs if v.startswith(word.casefold())][:1]
    return f"did you mean: jaxscope {near[0]}" if near else f"the commands are: {', '.join(verbs)}"


def wants_json(argv: Sequence[str]) -> bool:
    """Return whether the command line ``argv`` requests JSON (``--format json``); always true for ``jaxscope
    show``. ``argv`` may be invalid, because the format of the error message depends on this, too."""
    verb = argv[0] if argv else ""
    if verb in TAKES_A_PROGRAM:
        # The words after the script are the program's, not jaxscope's.
        argv = list(itertools.takewhile(lambda word: word != "--" and not word.endswith(".py"), argv))
    forms = {f"{option}=json" for option in FORMATS}
    pairs = itertools.pairwise(argv)
    return (
        verb == "show" or any(w in forms for w in argv) or any(a in FORMATS and b == "json" for a, b in pairs)
    )


def _complain(e: JaxscopeError, argv: Sequence[str]) -> None:
    """Print the error ``e`` on stderr: as one line of JSON if the command line ``argv`` requests JSON, else
    as text."""
    from jaxscope.present.escape import escape

    if wants_json(argv):
        import json

        error = {"slug": e.slug, "message": e.message, "hint": e.hint}
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stderr.write(json.dumps({"schema": 1, "error": error}) + "\n")
            sys.stderr.flush()
        return
    # With the slug users find the error in the documentation ("Errors") and in bug reports.
    name = "" if e.slug in UNNAMED else f" [{e.slug}]"
    text = f"jaxscope: {escape(e.message)}{name}\n" + (f"  {escape(e.hint)}\n" if e.hint else "")
    with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr may be closed
        sys.stderr.write(text)
        sys.stderr.flush()
