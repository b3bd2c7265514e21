"""Templates for memory that a program holds twice or does not need (JX505 to JX507)."""

TEMPLATES = {
    "unused-donation": "{function} cannot reuse the donated {path}{more} ({bytes}){reason}",
    "unused-donation-reason": ": {reason}",
    "and-more": " and {n} more",
    "fix-unused-donation": "do not donate it, or return a result with the same shape, dtype and sharding",
    "possible-donation": (
        "{path}{more} of {function} ({bytes}) could be donated: no live reference was found {when}"
    ),
    "fix-donate": (
        "jit with donate_argnames={argnames} if your code does not read {names} after the call, not even"
        " under another name: the call deletes {them}"
    ),
    "fix-donate-except-first": (
        'jit with eqx.filter_jit(donate="all-except-first"), which keeps the first argument (several in a'
        " tuple) and deletes all other arrays, if your code does not read {names} after the call, not even"
        " under another name"
    ),
    "fix-donate-in-place": (
        "jit with donate_argnames={argnames}: nnx.jit puts the new arrays into {names}, which your code may"
        " read after the call; it must not read other references to the old arrays (a copy of the state, an"
        " average)"
    ),
    "fix-same-objects": "{fix}; {functions} can donate it, too: the same objects are passed",
    "captured-constant": "{function} captures {constant} ({bytes}) as a constant",
    "one-of": "one of {names}",
    "unnamed-array": "an array without a name",
    "fix-pass-as-argument": "pass {constant} as an argument",
}
