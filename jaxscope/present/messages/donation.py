"""Templates for memory that a program holds twice or does not need (JX505 to JX507)."""

TEMPLATES = {
    "unused-donation": "{path}{more} ({bytes}) is donated to {function} without effect{reason}",
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
    "fix-copy-then-donate": (
        "{copy} begins as the same arrays as {original}, which XLA cannot donate twice: copy them wherever"
        " {copy} is set to {original}, with jax.tree.map(jnp.copy, {original}); then {fix}"
    ),
    "fix-donate-except-first": (
        'jit with eqx.filter_jit(donate="all-except-first"), which keeps the first argument (several in a'
        " tuple) and deletes all other arrays, if your code does not read {names} after the call, not even"
        " under another name"
    ),
    "fix-donate-in-place": (
        "jit with donate_argnames={argnames}: nnx.jit puts the new arrays into {names}, so that your code may"
        " read {names} after the call. It must not read the old arrays through another variable, such as a"
        " state that nnx.split or nnx.state returned before the call"
    ),
    "captured-constant": "{function} captures {constant} ({bytes}) as a constant",
    "one-of": "one of {names}",
    "unnamed-array": "an array without a name",
    "fix-pass-as-argument": "pass {constant} as an argument",
}
