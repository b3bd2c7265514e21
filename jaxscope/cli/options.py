"""Define the options of ``jaxscope run``, and separate them from the command line of the program."""

from __future__ import annotations

import argparse
import difflib
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from jaxscope.cli import Parser, config
from jaxscope.errors import UsageError
from jaxscope.log import store

USAGE = "jaxscope run [options] (script.py | -m module | -c code | dir) [args...]"

DESCRIPTION = """\
Run a program as python would, and record every function that JAX traces, lowers and compiles: the line that
called it, its arguments and the time it took. jaxscope uses the Python in which it is installed. Your program
is not changed: its output, exit code and signals stay the same.
"""

EXAMPLES = """\
examples:
  jaxscope run train.py --lr 0.1          --lr is an option of train.py
  jaxscope run -m package.train           a module, as with python -m
  jaxscope run --live train.py            print a line on stderr as soon as something recompiles
  jaxscope run --detach train.py          leave it running, even when this terminal closes
  jaxscope run -q -o out/run1 train.py    record into this directory, print no summary
  jaxscope run --target v5e:4x4 --vary 'MESH=8x2,4x4' train.py    run once per mesh and compare the programs
  jaxscope run --no-tui train.py          the program keeps the terminal: input(), breakpoint()
afterwards:
  jaxscope report                         what was compiled, why it recompiled, what it cost

Options before the script are for jaxscope; everything after the script is for the program. Options of Python
come before -m jaxscope: python -O -m jaxscope run train.py. Child processes are recorded too, because they
inherit PYTHONPATH, to which jaxscope adds a directory. Signals reach the program as they would without
jaxscope. In the terminal interface, Ctrl-C and q ask before they stop the program.
"""

PYTHONS_OWN = "uOBXWIEsSPbdvixq"  # one-letter options of python: an error if they follow `run`


class OptionsParser(Parser):
    """Parses jaxscope's own options. If an unknown option seems to belong to Python or to the program, the
    error message shows where to write it.

    Attributes:
      ours: the words that this parser parses, for error messages.
      rest: the words of the program, for error messages.
    """

    ours: Sequence[str] = ()
    rest: Sequence[str] = ()

    def error(self, message: str) -> NoReturn:
        given = message.removeprefix("unrecognized arguments: ")
        word = given.split(" ")[0]
        if given != message and word[:1] == "-":
            if word[1:2] in PYTHONS_OWN:
                hint = f"an option of Python goes before jaxscope: python {word} -m jaxscope run ..."
                raise UsageError(f"{self.prog}: {message}", hint=hint, slug="usage")
            ours = [o for action in self._actions for o in action.option_strings]
            script = next((n for n, w in enumerate(self.rest) if w.endswith(".py") or Path(w).exists()), None)
            if script is not None and not difflib.get_close_matches(word.partition("=")[0], ours, 1, 0.8):
                theirs = given.split(" ")
                kept = [w for w in self.ours if w not in theirs]
                meant = [*kept, self.rest[script], *theirs, *self.rest[:script], *self.rest[script + 1 :]]
                hint = f"the program's options come after the script: jaxscope run {shlex.join(meant)}"
                raise UsageError(f"{self.prog}: {message}", hint=hint, slug="usage")
        super().error(message)


def parser() -> OptionsParser:
    """Return the parser of the options of ``jaxscope run``. Most options are None by default, so that
    ``configure`` can fill them in from the configuration."""
    parser = OptionsParser(prog="jaxscope run", usage=USAGE, description=DESCRIPTION, epilog=EXAMPLES)
    _add_where_to_record(parser.add_argument_group("where to record"))
    _add_what_to_record(parser.add_argument_group("what to record"))
    _add_targets(parser.add_argument_group("compile for another accelerator"))
    _add_how_it_runs(parser.add_argument_group("how it runs"))
    return parser


def _add_where_to_record(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "-o",
        "--out",
        metavar="DIR",
        help="record into DIR, which must be new or empty (default: a new directory in .jaxscope/runs). With"
        " s3://... or gs://..., record in .jaxscope/runs and upload from there while the program runs",
    )
    group.add_argument("--overwrite", action="store_true", help="replace the run in DIR")
    group.add_argument("--name", help="name of the run (default: made from the script's name)")
    group.add_argument(
        "--job",
        metavar="NAME",
        help="the name of the job, if no launcher sets one. Processes with the same NAME write into one run"
        " if they have the same --out (without --out: the same working directory)",
    )


def _add_what_to_record(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--ir",
        choices=store.IR_CHOICES,
        help="which program texts (intermediate representations) of your functions to keep: stablehlo as"
        " lowered, hlo as compiled (all, the default: both; stats: figures only; none: no texts and no"
        " figures)",
    )
    group.add_argument(
        "--step-function",
        metavar="NAME",
        help="count the calls of this function as steps (a function that is not jitted needs Python 3.12)",
    )
    group.add_argument(
        "--arrays",
        action=argparse.BooleanOptionalAction,
        help="record the live arrays (arrays whose memory is not freed) at the end of steps, using at most"
        " 1%% of the run time (default: yes)",
    )
    group.add_argument(
        "--transfers",
        action=argparse.BooleanOptionalAction,
        help="count copies between host and devices; to see copies to the host, methods of JAX's arrays are"
        " replaced while the program runs (default: yes)",
    )
    group.add_argument(
        "--line-times",
        action=argparse.BooleanOptionalAction,
        help="measure on which lines the main thread spends its time, by samples of its stack (default: yes)",
    )
    group.add_argument(
        "--redact",
        action=argparse.BooleanOptionalAction,
        help="do not record values of static arguments, lines of source and paths outside the project"
        " (default: no)",
    )
    group.add_argument(
        "--profile",
        metavar="steps=A:B",
        type=_steps,
        help="run JAX's profiler from step A to step B (A is at least 2), and report the measured seconds of"
        " each line of your code; xprof opens the profile, which is kept in the run directory",
    )
    group.add_argument(
        "--check",
        metavar="SPEC",
        help="check the run after it has ended, as jaxscope check does:"
        " no-recompiles-after=2,max-compile-seconds=60. The exit code is 3 if the program succeeded and the"
        " check failed. With --target, wait for the target's programs and check them",
    )


def _steps(text: str) -> tuple[int, int]:
    """Parse a value of ``--profile`` to (first step, last step): ``steps=10:12`` -> ``(10, 12)``,
    ``steps=10`` -> ``(10, 10)``.

    Raises:
      ArgumentTypeError: the text has another form, or these steps cannot be profiled.
    """
    found = re.fullmatch(r"steps=([0-9]{1,9})(?::([0-9]{1,9}))?", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not steps=A:B, for example steps=10:12")
    first, last = int(found[1]), int(found[2] or found[1])
    if not 2 <= first <= last:
        raise argparse.ArgumentTypeError(
            f"{text!r}: the first step compiles, and B is not before A: 2 <= A <= B"
        )
    return first, last


def _add_targets(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--target",
        action="append",
        metavar="TARGET",
        help="also compile your functions for this accelerator: v5e:16x16, v5p:8x8x8, 2*v5e:4x4 (two slices)."
        " The script itself runs on as many simulated CPU devices as the target has (repeatable; 'jaxscope"
        " targets' lists all accelerators)",
    )
    group.add_argument(
        "--wait-targets",
        action="store_true",
        default=None,
        help="wait until all targets are compiled (default: they are compiled in the background)",
    )
    group.add_argument(
        "--dry-run",
        action="store_true",
        help="stop the script after its step function (--step-function, or watch(step=True)) was lowered,"
        " before that function runs",
    )
    group.add_argument(
        "--vary",
        action="append",
        metavar="NAME=A,B",
        help="run the script once per value of an environment variable ('MESH=64x4,32x8') or of an"
        " option of the script ('--mesh=64x4,32x8'), and compare the programs (repeat the"
        " option to run every combination; a comma within a value: '\"a,b\"' or a\\,b)",
    )


def _add_how_it_runs(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--tui",
        action=argparse.BooleanOptionalAction,
        help="show the run in the terminal interface and keep the program's output in a file (default:"
        " if stdin and stdout are a terminal). --no-tui leaves the terminal to the program, which can then"
        " read from it",
    )
    group.add_argument(
        "--live", action="store_true", default=None, help="print a line on stderr when a function recompiles"
    )
    group.add_argument(
        "--tee-stderr",
        action="store_true",
        default=None,
        help="also record what the program and XLA print on stderr",
    )
    group.add_argument(
        "--detach",
        action="store_true",
        help="return immediately, and leave the program running without this terminal",
    )
    group.add_argument(
        "--compare-ranks",
        action=argparse.BooleanOptionalAction,
        help="in a job of many processes (ranks), print a line as soon as ranks compile different programs,"
        " or wait for a rank that runs a different program (default: yes, for up to 256 ranks)",
    )
    group.add_argument(
        "--ranks-patience",
        type=float,
        metavar="SECONDS",
        help="print which ranks wait after this many seconds without progress (default: 30)",
    )
    group.add_argument(
        "--stop-on-divergence",
        action="store_true",
        default=None,
        help="end the job with exit code 4 as soon as it is known that its ranks run different programs",
    )
    group.add_argument(
        "--metrics",
        metavar="WHERE",
        help="at the end, write numbers per step for a dashboard (compile seconds, recompiles by cause,"
        " bytes): FILE.jsonl, FILE.csv, tensorboard:DIR or wandb",
    )
    group.add_argument("-q", "--quiet", action="store_true", default=None, help="print no summary at the end")


def split(words: list[str], parser: argparse.ArgumentParser) -> tuple[list[str], list[str]]:
    """Split the words after ``jaxscope run`` into (jaxscope's options, the program's words): ``["-q",
    "train.py", "--lr", "1"]`` -> ``(["-q"], ["train.py", "--lr", "1"])``. The program's words begin after
    ``--``, or at the first word that is ``-``, begins with ``-m`` or ``-c``, or is neither an option nor the
    value of an option of ``parser``."""
    # nargs 0: a flag
    takes_value = {name: action.nargs is None for action in parser._actions for name in action.option_strings}
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            return words[:at], words[at + 1 :]
        if word == "-" or not word.startswith("-") or word[:2] in ("-m", "-c"):
            break
        at += 2 if takes_value.get(word) else 1
    return words[:at], words[at:]


def configure(opts: argparse.Namespace) -> None:
    """Set each option in ``opts`` that the configuration may set and that is None, because it is not on the
    command line, to its value in the environment (``JAXSCOPE_*``) or else in pyproject.toml, if any. Also set
    ``opts.wrapper_libraries``, which has no option on the command line."""
    configured = config.load()
    for key in config.OPTIONS["run"]:
        name = key.replace("-", "_")
        setattr(opts, name, configured.get("run", key, getattr(opts, name)))
    opts.wrapper_libraries = configured.get("", "wrapper-libraries")
