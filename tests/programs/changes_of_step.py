"""Small changes to ``pinned_step.py``, each with the finding that must name it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

PROGRAM = Path(__file__).with_name("pinned_step.py")
DEVICES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}


class Change(NamedTuple):
    """``edits``: (old, new) text of the program; ``code`` and ``words``: of one finding, its title and evidence."""

    name: str
    edits: tuple[tuple[str, str], ...]
    code: str
    words: tuple[str, ...]

    def source(self) -> str:
        """The program with the change.

        Raises:
          ValueError: what is to be changed is not there once.
        """
        text = PROGRAM.read_text()
        for old, new in self.edits:
            if text.count(old) != 1:
                raise ValueError(f"{self.name}: {old!r} stands {text.count(old)} times in the program")
            text = text.replace(old, new)
        return text


CHANGES = [
    Change(
        "a dropped donation",
        ((', donate_argnames="state"', ""),),
        "JX705",
        ("train_step", "state is no longer donated", "4 arrays were reused"),
    ),
    Change(
        "a donation in vain",
        (('donate_argnames="state"', 'donate_argnames=("state", "batch")'),),
        "JX705",
        ("train_step", "3 arrays of batch donated without effect, 0 in the baseline"),
    ),
    Change(
        "a lost constraint",
        (
            (
                '    error = jax.lax.with_sharding_constraint(jnp.sin(error), NamedSharding(mesh, P("data", "model")))\n',
                "    error = jnp.sin(error)\n",
            ),
        ),
        "JX713",
        ("train_step", "flops of matrix products", "+28 %"),
    ),
    Change(
        "a constraint to nothing",
        (('NamedSharding(mesh, P("data", "model"))', "NamedSharding(mesh, P())"),),
        "JX702",
        ("train_step", "all-gather over data", "in the baseline", "in loss_fn"),
    ),
    Change(
        "a weak type",
        (('"count": put(np.int32(0))', '"count": put(0)'),),
        "JX701",
        ("train_step", "state['count']", "weak"),
    ),
    Change(
        "a shorter last batch",
        (("size = BATCH", "size = BATCH if i < STEPS - 1 else BATCH // 2"),),
        "JX701",
        ("train_step", "2x, 1x in the baseline", "f32[32,64]", "f32[64,64]"),
    ),
    Change(
        "a longer batch",
        (("BATCH, STEPS = 6, 64, 256, 64, 6", "BATCH, STEPS = 6, 64, 256, 96, 6"),),
        "JX704",
        ("train_step", "batch['x'] changed from f32[64,64]", "to f32[96,64]"),
    ),
    Change(
        "a batch that is not split",
        ((', "data"), "y": put(x[:, ::-1].copy(), "data")', '), "y": put(x[:, ::-1].copy())'),),
        "JX704",
        ("train_step", "batch['x'] changed from f32[64,64] P('data',)", "to f32[64,64] P()"),
    ),
    Change(
        "one more psum",
        (
            (
                '    return {"params": params, "count": state["count"] + jnp.int32(1)}, loss',
                "    total = lambda w: jax.lax.psum(w, 'data')\n"
                '    params["up"] = jax.shard_map(total, mesh=mesh, in_specs=P(None, "model"), out_specs=P(None, "model"), check_vma=False)(params["up"]) / 4\n'
                '    return {"params": params, "count": state["count"] + jnp.int32(1)}, loss',
            ),
        ),
        "JX702",
        ("train_step", "all-reduce over data in train_step", "in the baseline"),
    ),
    Change(
        "a captured array",
        (('    error = (forward(params, batch["x"])', '    error = (forward(params, batch["x"] + TABLE[:64])'),),
        "JX706",
        ("train_step", "TABLE", "128.0 KiB"),
    ),
    Change(
        "a float per step",
        (("losses.append(loss)", "losses.append(float(loss))"),),
        "JX714",
        ("main moves data with float", "6x in 6 steps, 1x in the baseline", "float(loss)"),
    ),
    Change(
        "a debug print",
        (
            (
                "    params = jax.tree.map(update",
                '    jax.debug.print("loss {}", loss)\n    params = jax.tree.map(update',
            ),
        ),
        "JX708",
        ("train_step", "calls into Python", "none in the baseline"),
    ),
    Change(
        "a float64 product",
        (
            ("import jaxscope\n", 'import jaxscope\n\njax.config.update("jax_enable_x64", True)\n'),
            ("return h @ params[\"down\"]", 'return (h.astype("float64") @ params["down"]).astype("float32")'),
        ),
        "JX707",
        ("train_step", "f64"),
    ),
    Change(
        "an upcast",
        (
            ('h = jax.nn.relu(h @ params["up"])', 'h = jax.nn.relu((h.astype("bfloat16") @ params["up"].astype("bfloat16")).astype("float32"))'),
        ),
        "JX707",
        ("train_step", "conversions from bfloat16 to float32", "none in the baseline"),
    ),
    Change(
        "a higher precision",
        (('return h @ params["down"]', 'return jnp.dot(h, params["down"], precision="highest")'),),
        "JX707",
        ("train_step", "HIGHEST"),
    ),
    Change(
        "a loop written out",
        (
            (
                '    h, _ = jax.lax.scan(layer, x, params["layers"])\n',
                '    h = x\n    for i in range(LAYERS):\n        h, _ = layer(h, params["layers"][i])\n',
            ),
        ),
        "JX709",
        ("train_step", "loops of 6 iterations"),
    ),
    Change(
        "one layer more",
        (("LAYERS, WIDTH, HIDDEN, BATCH, STEPS = 6,", "LAYERS, WIDTH, HIDDEN, BATCH, STEPS = 7,"),),
        "JX709",
        ("train_step", "loops of 7 iterations", "state['params']['layers'] changed from f32[6,64,64]"),
    ),
    Change(
        "a static value that changes",
        (('mode="square")', 'mode="square" if i < 4 else "absolute")'),),
        "JX701",
        ("train_step", "2x, 1x in the baseline", "'absolute'", "'square'"),
    ),
    Change(
        "a function made anew in each step",
        (('"x": scale(batch["x"])', '"x": jax.jit(lambda v: halve(v))(batch["x"])'),),
        "JX701",
        ("is not in the baseline", "compiled 6x"),
    ),
    Change(
        "jit made anew around one function",
        (('"x": scale(batch["x"])', '"x": jax.jit(functools.partial(halve))(batch["x"])'),),
        "JX701",
        ("halve is compiled 6x but is not in the baseline",),
    ),
    Change(
        "an equal sharding spelled otherwise",
        (
            (
                '"x": scale(batch["x"])}',
                '"x": put(scale(batch["x"]), *[("data",), ("data", None)][i % 2]), "y": put(batch["y"], *[("data",), ("data", None)][i // 2 % 2])}',
            ),
        ),
        "JX124",
        ("train_step",),
    ),
    Change(
        "a larger temporary",
        (("return jnp.mean(error**2)", "return jnp.mean(jnp.cumsum(jnp.tile(error, (8, 1)), axis=0) ** 2) + jnp.mean(error**2)"),),
        "JX704",
        ("train_step", "temporaries"),
    ),
    Change(
        "an operation outside jit",
        (("        losses.append(loss)", "        losses.append(loss * 2)"),),
        "JX701",
        ("main", "outside jit", "multiply 1x (0x in the baseline)"),
    ),
    Change(
        "a setting that changes",
        (("        state, loss = train_step", '        jax.config.update("jax_default_matmul_precision", "highest" if i > 3 else None)\n        state, loss = train_step'),),
        "JX701",
        ("train_step", "2x, 1x in the baseline", "jax_default_matmul_precision"),
    ),
    Change(
        "weights in another layout over the mesh",
        (('"down": put(normal(HIDDEN, WIDTH), "model")', '"down": put(normal(HIDDEN, WIDTH), None, "model")'),),
        "JX702",
        ("train_step", "all-", "state['params']['down'] changed from"),
    ),
]  # fmt: skip


def names_it(change: Change, finding: dict) -> bool:
    """Does a finding, as JSON, say what ``change`` did?"""
    texts = [finding["title"], *(e["text"] for e in finding["evidence"])]
    return finding["code"].startswith(change.code) and all(any(w in t for t in texts) for w in change.words)
