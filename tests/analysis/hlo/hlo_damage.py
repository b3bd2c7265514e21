"""Ways to damage a text. Also used by benchmarks/fuzz_hlo.py."""

from __future__ import annotations

import random as randomness
from collections.abc import Callable

_SIGNS = "{}[]()<>=,'\"\\% \n\t\x00\u2028aT01-9\U0001f600"


def _cut(text: str, random: randomness.Random) -> str:
    a, b = sorted(random.choices(range(len(text) + 1), k=2))
    return text[a:b]


def _hole(text: str, random: randomness.Random) -> str:
    a, b = sorted(random.choices(range(len(text) + 1), k=2))
    return text[:a] + text[b:]


def _mutate(text: str, random: randomness.Random) -> str:
    signs = list(text)
    for _ in range(random.randint(1, 30)):
        at = random.randrange(len(signs) + 1)
        what = random.choice(("replace", "insert", "delete"))
        signs[at : at + (what != "insert")] = [] if what == "delete" else [random.choice(_SIGNS)]
    return "".join(signs)


def _shuffle(text: str, random: randomness.Random) -> str:
    lines = text.split("\n")
    random.shuffle(lines)
    return "\n".join(lines)


def _drop(text: str, random: randomness.Random) -> str:
    return "\n".join(line for line in text.split("\n") if random.random() < 0.8)


def _repeat(text: str, random: randomness.Random) -> str:
    lines = text.split("\n")
    return "\n".join(line for line in lines for _ in range(random.choice((0, 1, 1, 3))))


def _swap_names(text: str, random: randomness.Random) -> str:
    """Names point elsewhere: calls in circles, operands of the wrong kind."""
    names = [word.strip("%,)}") for word in text.split() if word.startswith("%")]
    for _ in range(random.randint(1, 20) if names else 0):
        text = text.replace(f"%{random.choice(names)}", f"%{random.choice(names)}", random.randint(1, 4))
    return text


def _numbers(text: str, random: randomness.Random) -> str:
    absurd = ["-1", "99999999999999999999", "1e9", "0", "4294967296", "\u0663", "\u00b2"]
    parts = text.split("=")
    for _ in range(random.randint(1, 20)):
        at = random.randrange(len(parts))
        parts[at] = parts[at].replace(str(random.randint(0, 9)), random.choice(absurd), 2)
    return "=".join(parts)


DAMAGE: dict[str, Callable[[str, randomness.Random], str]] = {
    "cut": _cut,
    "hole": _hole,
    "mutated": _mutate,
    "shuffled": _shuffle,
    "dropped lines": _drop,
    "repeated lines": _repeat,
    "names exchanged": _swap_names,
    "numbers exchanged": _numbers,
}


def damaged(text: str, kind: str, random: randomness.Random) -> str:
    return DAMAGE[kind](text, random)
