"""Templates for memory that a program holds twice or does not need (JX505 to JX507)."""

TEMPLATES = {
    "unused-donation": "{path}{more} ({bytes}) is donated to {function} without effect{reason}",
    "unused-donation-reason": " ({reason})",
    "and-more": " and {others}",
    "fix-unused-donation": "do not donate it, or return a result with the same shape, dtype and sharding",
    "possible-donation": (
        "{function} could donate {path}{more} ({bytes}{each}), so that XLA reuses the memory: {when}, the"
        " program no longer held the old arrays"
    ),
    "on-each-device": " on each device",
    "program-ended": "when it ended",
    "looked-next": "soon after the call",
    "fix-donate": (
        "jit {function} with donate_argnames={argnames}, if your code does not read {names} after a call, not"
        " even under another name: the call deletes {them}"
    ),
    "fix-copy-then-donate": (
        "{copy} begins as the same arrays as {original}, which XLA cannot donate twice: copy them wherever"
        " {copy} is set to {original}, with jax.tree.map({leaf}, {original}); then {fix}"
    ),
    "fix-copy-state-then-donate": (
        "{copy} has the same arrays as {original}, which XLA cannot donate twice: after each line outside"
        " the jitted function that makes {copy} from {original}, or copies its values, give it arrays of its"
        " own: nnx.update({copy}, jax.tree.map(jnp.copy, nnx.state({original}))). Then {fix}"
    ),
    "fix-donate-to-pmap": (
        "call jax.pmap with donate_argnums={positions}, for {names}, if your code does not read {names}"
        " after a call, not even under another name: the call deletes {them}"
    ),
    "fix-donate-all": (
        'use eqx.filter_jit(donate="all"), if your code does not read {names} after a call, not even under'
        " another name: the call deletes their arrays"
    ),
    "fix-donate-except-first": (
        'use eqx.filter_jit(donate="all-except-first"){first}, so that {kept} {stays} and each call deletes'
        " the arrays of {names}: your code must not read {names} after a call, not even under another name"
    ),
    "as-first-parameter": " and make {name} the first parameter",
    "as-first-tuple": " and pass {names} as one tuple, which is the first parameter",
    "fix-donate-in-place": (
        "jit {function} with donate_argnames={argnames}: nnx.jit puts the new arrays into {names}, so that"
        " your code may read {names} after the call. It must not read the old arrays through another"
        " variable, such as a state that nnx.split or nnx.state returned before the call"
    ),
    "captured-constant": (
        "{functions} {capture} {constant} ({bytes}) as a constant: each compiled program contains a copy, and"
        " takes longer to compile"
    ),
    "one-of": "one of {names}",
    "unnamed-array": "an array without a name",
    "fix-pass-as-argument": "pass {constant} as an argument",
    "fix-pass-inner": (
        "a function that {function} calls captures {constant}: pass the array to {function} as an argument,"
        " and select from it there (x[i]) instead of calling that function"
    ),
}
