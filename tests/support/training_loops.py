"""Training programs in each library's own style, with a read of the loss and a look in every step."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from folders import PROGRAMS
from recordings import Recorded


@dataclass(frozen=True)
class Loop:
    """What is changed in a program of ``tests/programs``.

    Attributes:
        before: A text of the program.
        after: What stands there instead: the same, and a read of the loss.
        reads: How often the program reads it.
    """

    before: str = ""
    after: str = ""
    reads: int = 0


LOOPS = {
    "optax_train.py": Loop('losses.append(metrics["loss"])', 'losses.append(float(metrics["loss"]))', 60),
    "nnx_train.py": Loop(
        "        loss = train_step(model, optimizer, x, y)",
        "        loss = train_step(model, optimizer, x, y); float(loss)",
        60,
    ),
    "equinox_train.py": Loop("l2=step >= 50)", "l2=step >= 50); float(evaluate(model, x, y))", 60),
    "haiku_train.py": Loop(),
}


def source(program: str) -> str:
    """Return the changed text of ``program``."""
    text = (PROGRAMS / program).read_text()
    loop = LOOPS[program]
    assert loop.before in text
    text = text.replace(loop.before, loop.after) if loop.before else text
    text, n = re.subn(r"(?m)^    for .*:\n", r"\g<0>        __import__('jaxscope').snapshot()\n", text)
    assert n
    return text


def recorded(program: str, record_module: Callable[..., Recorded]) -> Recorded:
    """Record the changed program, once for all tests."""
    return record_module(source(program))
