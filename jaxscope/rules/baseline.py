"""JX701 to JX714: a run is not what its baseline says. JX902: a comment that leaves nothing out.

Only their explanations: model.baseline compares, and rules.selection knows the comments.
"""

from __future__ import annotations

from jaxscope.rules.registry import explain
from jaxscope.schema.findings import ERROR, NOTE

_PINNED = """
## Why is this bad?
{why}

## What to do
{what} Where the change is meant, ``jaxscope check --update-baseline`` writes the file anew; commit it with the
change, so that whoever reviews one sees the other.
"""

explain(
    "JX701",
    "baseline-compilations",
    ERROR,
    """## What it does
    Compares how often each function was compiled, and why, with the baseline. Traces, lowerings, compilations and
    their causes are exact; a function or an eager operation that the baseline does not know is told, too, and a program
    for other shapes than any in the baseline: it is not compared.
    """,
    _PINNED.format(
        why="One more compilation costs its seconds in every run, and in a loop those of every step.",
        what="The finding names the cause: what the call had that no earlier one had. ``jaxscope rule`` of the "
        "finding about that cause (JX101 to JX121) says how it goes away.",
    ),
)
explain(
    "JX702",
    "baseline-communication",
    ERROR,
    """## What it does
    Compares the collectives of each program, by kind and mesh axes, with the baseline. How many there are, how
    often they run in a call (through loops) and their bytes are exact.
    """,
    _PINNED.format(
        why="The time of a sharded step is often the time of its communication. A constraint that got lost, or a "
        "batch that is no longer split, shows here and nowhere else.",
        what="Look at the line: which operands lie otherwise than the operation needs them?",
    ),
)
explain(
    "JX703",
    "baseline-fusions",
    ERROR,
    """## What it does
    Compares the fusions of each program with the baseline. By kind, and the elementwise operations outside of
    any, within the tolerance that stands in the file (5 %).
    """,
    _PINNED.format(
        why="Every fusion is a kernel that reads and writes memory; more of them for the same work is slower.",
        what="``jaxscope diff`` of a run before and one after says which lines the new ones are of.",
    ),
)
explain(
    "JX704",
    "baseline-memory",
    ERROR,
    """## What it does
    Compares the memory of each program with the baseline. Arguments, results, temporaries and the peak, in bytes
    on one device, within the tolerance that stands in the file (5 %).
    """,
    _PINNED.format(
        why="Memory decides which model and which batch fit at all.",
        what="The finding says which arguments changed, where that is the reason.",
    ),
)
explain(
    "JX705",
    "baseline-donation",
    ERROR,
    """## What it does
    Compares what is donated, and what of it in vain, with the baseline. By argument, and how many arrays of it.
    """,
    _PINNED.format(
        why="A state that is not donated exists twice while the step runs.",
        what="Give the argument to donate_argnames (or donate_argnums), and return what replaces it with the same "
        "shape, dtype and sharding.",
    ),
)
explain(
    "JX706",
    "baseline-constants",
    ERROR,
    """## What it does
    Compares the arrays that programs took in from outside with the baseline. By name and bytes.
    """,
    _PINNED.format(
        why="A captured array is copied into the program: compiling gets slower, memory is taken for each program, "
        "and a new value is not seen.",
        what="Pass it as an argument.",
    ),
)
explain(
    "JX707",
    "baseline-precision",
    ERROR,
    """## What it does
    Compares the types and precision of matrix products, and conversions to wider types, with the baseline. More products of the same kind are a larger program, and no finding.
    """,
    _PINNED.format(
        why="A product in a wider type or a higher precision takes several times as long on accelerators.",
        what="Cast the other operand down, or set the precision as it was.",
    ),
)
explain(
    "JX708",
    "baseline-callbacks",
    ERROR,
    """## What it does
    Compares the calls from a program back into Python with the baseline. ``jax.debug.print``, ``pure_callback`` and
    the like, by kind.
    """,
    _PINNED.format(
        why="The device waits for the host; before JAX 0.11 the persistent cache keeps no such program, either.",
        what="Return the value and look at it outside.",
    ),
)
explain(
    "JX709",
    "baseline-loops",
    ERROR,
    """## What it does
    Compares the loops of a program, by how often they turn, with the baseline. Neither more nor fewer are better by
    themselves: a loop that is gone may be one that was written out.
    """,
    _PINNED.format(
        why="A loop that is written out takes that many times as long to trace and to compile.",
        what="Keep the turns in ``jax.lax.scan``.",
    ),
)
explain(
    "JX710",
    "baseline-unused",
    NOTE,
    """## What it does
    Names functions of the baseline that this run did not compile, or that stand in another file now.
    """,
    """
    ## Why is this bad?
    What did not run was not compared. With ``--strict`` it fails the check.

    ## What to do
    Run what the baseline was written from, or write it anew: ``jaxscope check --update-baseline``.
    """,
)
explain(
    "JX711",
    "baseline-improved",
    NOTE,
    """## What it does
    Says what is better than in the baseline: fewer compilations, collectives, bytes.
    """,
    """
    ## Why is this bad?
    It is not; but what the file does not say can be lost again unseen.

    ## What to do
    Keep it: ``jaxscope check --update-baseline``, and commit the file.
    """,
)
explain(
    "JX712",
    "baseline-elsewhere",
    NOTE,
    """## What it does
    Says that the baseline is of another JAX, platform or set of devices. Of JAX the minor version counts. Nothing is compared then. With ``--strict`` it fails the check.
    """,
    """
    ## Why is this bad?
    Another compiler makes other programs of the same source: what differs would say nothing about the change.

    ## What to do
    Keep one file for each environment, and name it with ``--baseline``; after an update of JAX, write it anew.
    """,
)
explain(
    "JX713",
    "baseline-flops",
    ERROR,
    """## What it does
    Compares the work of matrix products and convolutions with the baseline. Floating-point operations on one
    device in one call, within the tolerance that stands in the file (5 %).
    """,
    _PINNED.format(
        why="A sharding constraint that got lost leaves the result as it was, and every device computes what they "
        "shared before.",
        what="See that what the products take is split over the mesh as it was.",
    ),
)
explain(
    "JX714",
    "baseline-transfers",
    ERROR,
    """## What it does
    Compares the copies between host and devices that lines of yours ask for with the baseline. By function and kind
    (``float``, ``device_get``, ``np.asarray``, ...), as many as there may be to so many steps.
    """,
    _PINNED.format(
        why="``float(loss)`` in each step makes the host wait for the device, and the device for the host.",
        what="Keep the value on the device, and look at it every so many steps.",
    ),
)
explain(
    "JX902",
    "unused-ignore",
    NOTE,
    """## What it does
    Names ``# jaxscope: ignore`` comments in the files of a run that left nothing out, or that name no rule. With
    ``--strict`` they fail the check.
    """,
    """
    ## Why is this bad?
    It would hide the next finding on its line.

    ## What to do
    Take it out, where no other program needs it.
    """,
)
