"""Remove secrets from command lines and settings: values of options that are named like a secret
(``--api-token``), and texts that have the form of a secret (``ghp_...``).

A secret is replaced by ``<left out>``. In doubt a value is removed, because nothing is computed from command
lines and settings.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

MARK = "<left out>"

# Words within a name, which dashes, dots, underscores or capitals separate.
_SECRET = {"password", "passwd", "passphrase", "pwd", "secret", "secrets", "credential", "credentials",
           "auth", "bearer", "authorization", "cookie", "apikey", "authtoken", "accesstoken", "privatekey",
           "accesskey",
           "secretkey"}  # fmt: skip
_SECRET_AT_THE_END = {"token", "key", "pat", "dsn"}
# Words before "token" or "key" that show that the value is no secret: ``--pad-token``, ``--sort-key``.
_HARMLESS_BEFORE = {"pad", "eos", "bos", "unk", "mask", "sep", "cls", "special", "sort", "rng", "prng",
    "group", "label",
                    "image", "text", "target", "input", "output", "stop", "start", "end"}  # fmt: skip
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NUMBER = re.compile(r"[+-]?[\d.]+(e[+-]?\d+)?", re.IGNORECASE)
_ASSIGNED = re.compile(r"(?P<name>[+~]*-{0,2}[A-Za-z_][\w.@/-]*)(?P<sign>=|:=)(?P<value>.+)", re.DOTALL)
_OPTION = re.compile(r"--?[A-Za-z_][\w.-]*")

_SHAPES = [
    re.compile(shape)
    for shape in (
        r"(?<![\w-])sk-[\w-]{16,}",
        r"(?<!\w)(?:gh[opusr]_|github_pat_|glpat-|hf_|npm_|pypi-|dop_v1_|shpat_|xapp-|xox[abeoprs]-|ya29\."
        r"|AIza|wandb_v\d_)[\w.-]{16,}",
        r"(?<!\w)(?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{12,}",
        r"(?<!\w)eyJ[\w-]{6,}\.[\w-]{6,}(?:\.[\w-]*)?",
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.)*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
        r"(?i:(?<=bearer )|(?<=basic ))[\w.~+/=-]{8,}",
        r"(?<=://)[^/\s:@]{16,}(?=@)",  # a token before the host
    )
]
_URL_PASSWORD = re.compile(r"(://[^/\s:@]*:)[^/\s@]+(?=@)")
_QUOTED = re.compile(
    r"""(?<![\w.-])(?P<name>[\w.-]++)(?P<between>["']?\s*[:=]\s*)(?P<quote>["'])(?P<value>.*?)(?P=quote)"""
)
_QUERY = re.compile(r"(?<=[?&])(?P<name>[\w.-]+)=(?P<value>[^&\s#]+)")
_RUN = re.compile(r"[A-Za-z0-9+/]{36,}|[A-Za-z0-9]{20,}")
_CLASSES = re.compile(r"[a-z]+|[A-Z]+|\d+|[+/]+")


def named_like_a_secret(name: str) -> bool:
    """Return whether an option or a variable with the name ``name`` probably contains a secret: True for
    ``--api-token`` and ``PASSWORD``, False for ``--pad-token`` and ``--sort-key``."""
    parts = [part.casefold() for part in _PART.findall(name)]
    if any(part in _SECRET for part in parts) or "".join(parts[-2:]) in _SECRET:
        return True
    if not parts or parts[-1] not in _SECRET_AT_THE_END:
        return False
    return len(parts) < 2 or parts[-2] not in _HARMLESS_BEFORE


def _surely(name: str) -> bool:
    """Return whether a word in ``name`` always means a secret: True for ``--db-password``, False for
    ``--api-token``, because a token need not be secret."""
    return any(part.casefold() in _SECRET for part in _PART.findall(name))


def value(name: str, text: str) -> str:
    """Return ``text``, the value of the option or variable ``name``, with each secret replaced by ``<left
    out>``. If ``name`` is named like a secret, ``text`` as a whole is replaced, except a number for a name
    that ends in ``key`` (``--key 0``) and not, for example, in ``api-key``."""
    if text and named_like_a_secret(name):
        parts = [part.casefold() for part in _PART.findall(name)]
        secret = "".join(parts[-2:]) in _SECRET
        harmless = parts[-1:] == ["key"] and not secret and _NUMBER.fullmatch(text)  # ``--key 0``: a seed
        return text if harmless else MARK
    return without(text)


def words(argv: Sequence[str]) -> list[str]:
    """Return ``argv``, the words of a command line, with each secret replaced: ``["--api-token", "abc"]`` ->
    ``["--api-token", "<left out>"]``. The result has as many words as ``argv``."""
    found: list[str] = []
    before = ""  # the option whose value may come next
    for word in argv:
        given = _ASSIGNED.fullmatch(word)
        if before and not (word.startswith("--") or (_OPTION.fullmatch(word) and not _surely(before))):
            found.append(value(before, word))
            before = ""
        elif given is not None and "\n" not in given["name"]:
            found.append(f"{given['name']}{given['sign']}{value(given['name'], given['value'])}")
            before = ""
        else:
            found.append(without(word))
            before = word if _OPTION.fullmatch(word) and named_like_a_secret(word) else ""
    return found


def without(text: str) -> str:
    """Return ``text`` with ``<left out>`` in place of parts that look like a secret: ``ghp_...``, the
    password in a URL, the value in ``password='c'`` or ``?token=c``, and long random sequences of letters
    and digits. Random sequences in a path or a URL stay."""
    text = _URL_PASSWORD.sub(rf"\1{MARK}", text)
    for pattern in (_QUOTED, _QUERY):
        text = pattern.sub(_of_its_name, text)
    for shape in _SHAPES:
        text = shape.sub(MARK, text)
    if text[:1] in ("/", ".", "~") or "://" in text or os.path.exists(text):  # noqa: PTH110
        return text
    return _RUN.sub(lambda found: MARK if _random(found[0]) else found[0], text)


def _of_its_name(match: re.Match[str]) -> str:
    """Return the matched text, ``name=value``, with ``<left out>`` in place of the value if the name is like
    that of a secret."""
    if not match["value"] or not named_like_a_secret(match["name"]):
        return match[0]
    at, end = match.span("value")
    return match[0][: at - match.start()] + MARK + match[0][end - match.start() :]


def _random(run: str) -> bool:
    """Return whether ``run``, a sequence of letters and digits, looks like a random key: it changes more
    often between digits, capitals and small letters than words do."""
    kinds = _CLASSES.findall(run)
    mixed = any(c.isdigit() for c in run) and any(c.isalpha() for c in run)
    return mixed and len(kinds) > len(run) / 3.5
