"""Templates for shardings: other than requested, not divisible, moved in each call (JX503, JX504, JX508)."""

TEMPLATES = {
    "fix-also-ends-recompile": "{fix}. Then {function} does not recompile either",
    "refused-and-recompiled": (
        "{finding}. Therefore {function}, which receives {path}, also recompiled: {cause}"
    ),
    "other-sharding-than-requested": (
        "{function} does not use the requested sharding for {value}{more}: requested {wanted}, got"
        " {got}{reason}{times}"
    ),
    "constrained-argument": ("{function} constrains {value}{more} to {wanted}, but receives it {got}{times}"),
    "fix-put-as-constrained": (
        "where the program creates {path}{more}, use jax.device_put(array, NamedSharding(mesh, {sharding}))"
    ),
    "fix-return-as-constrained": (
        "in {maker}, which computes {path}{more}, give the results the sharding"
        " NamedSharding(mesh, {sharding}), with out_shardings= in its jit, or with"
        " jax.lax.with_sharding_constraint"
    ),
    "the-argument": "{path} ({aval})",
    "the-result": "its {path} ({aval})",
    "the-result-named": "{name} ({aval}; {path} of this function)",
    "size-not-divisible": "{size} is not divisible by {parts}",
    "other-memory-kind": "its memory kind is {kind}",
    "default-memory-kind": "the default",
    "other-sharding-reason": " because {reason}",
    "times-the-memory": ": each device holds {n} times as much of it",
    "whole-on-each-device": ": each device holds all of it; with the requested sharding it would hold 1/{n}",
    "more-bytes-on-each-device": "{finding} ({bytes} more on each device)",
    "fix-pad-or-replicate": (
        "do not shard this dimension; or pad dimension {dimension} from size {size} to {padded}, and cut the"
        " padding off where the array is used"
    ),
    "fix-pad-or-shard-other": (
        "shard dimension {other} instead, whose size {divisible} is divisible by {parts}: {sharding}. Or pad"
        " dimension {dimension} from size {size} to {padded}, and cut the padding off where the array is used"
    ),
    "fix-request-what-is-given": (
        "request the sharding that the program uses; or apply jax.lax.with_sharding_constraint(x, sharding)"
        " also to the values from which the array is computed"
    ),
    "failed-with-other-sharding": (
        "the program failed: an argument {aval} has the sharding {got}, but in_shardings requires {wanted}"
    ),
    "failed-on-other-device": (
        "the program failed: an argument {aval} is {got}, but in_shardings requires {wanted}"
    ),
    "fix-put-as-required": (
        "before the call, use jax.device_put to give the argument the sharding that in_shardings requires"
    ),
    "uneven-split": (
        "{function} shards {aval} as {wanted}, but the size {size} of dimension {dimension} is not divisible"
        " by {parts}: XLA pads the dimension to {padded}, of which {padding} are padding"
    ),
    "fix-pad-with-mask": "pad dimension {dimension} to {padded}, a multiple of {parts}, and mask the padding",
    "failed-not-divisible": (
        "the program failed: dimension {dimension}{path} cannot be sharded into {parts} parts"
        " because {size} is not divisible by {parts}"
    ),
    "of-path": " of {path}",
    "fix-pad-or-drop": (
        "pad dimension {dimension} to {padded}, a multiple of {parts}, and mask the padding, or"
        " drop the remainder"
    ),
    "moved-argument": (
        "{path}{more} ({bytes}) is placed {got}, but {function} needs it {wanted}: each call of {function}"
        " then copies it"
    ),
    "moved-arguments": (
        "{path}{more} ({bytes}) are placed {got}, but {function} needs them {wanted}: each call of {function}"
        " then copies them"
    ),
    "on-named-device": "on {device}",
    "replicated": "replicated",
    "in-memory-kind": "{sharding} in {kind}",
    "as-sharding": "as {sharding}{over}",
    "over-devices": " over {devices}",
    "fix-put-before-the-calls": (
        "use jax.device_put once, before the first call, to give {path} the sharding that {function} needs"
    ),
    "failed-on-several-devices": (
        "the program failed: the arrays of one call are on different devices: {places}"
    ),
    "on-place": "{what} on {place}",
    "one-device": "device {number}",
    "fix-put-with-the-others": "use jax.device_put to put {what} on the devices of the other arrays",
}
