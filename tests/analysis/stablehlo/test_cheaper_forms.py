"""Products of matrices and Fourier transforms that have a cheaper form, in programs lowered by the JAX at hand.

The operations are those by construction: a product of n x k and k x m matrices takes 2 n k m.
"""

import math

import pytest

from jaxscope.analysis.stablehlo.reading import analyze

N, LONG = 300, int(5 * 40009 * math.log2(40009))  # a transform of 40,009 numbers
FOUND = {
    # name: (the function, its arguments, {kind: (operations, operations of the cheaper form)})
    "matrices first": ("lambda a, b, v: a @ b @ v", "a, b, v", {"order": (2 * N**3 + 2 * N**2, 4 * N**2)}),
    "vector last": ("lambda a, b, v: v @ (a @ b)", "a, b, v", {"order": (2 * N**3 + 2 * N**2, 4 * N**2)}),
    "transposed": ("lambda a, b, v: (a @ b).T @ v", "a, b, v", {"order": (2 * N**3 + 2 * N**2, 4 * N**2)}),
    "for each": ("jax.vmap(lambda a, b, v: a @ b @ v, (None, None, 0))", "a, b, a[:3]", {"order": (2 * N**3 + 6 * N**2, 12 * N**2)}),
    "own matrix for each": (
        "jax.vmap(lambda a, v: a @ b @ v)", "jnp.stack([a, b]), a[:2]", {"order": (4 * N**3 + 4 * N**2, 8 * N**2)}
    ),
    "forward of a gradient": (
        "jax.grad(lambda a, b, v: jnp.sum((a @ b @ v) ** 2))", "a, b, v", {"order": (2 * N**3 + 2 * N**2, 4 * N**2)}
    ),
    "linear attention": (
        "lambda q, k, v: jnp.einsum('hqk,khd->qhd', jnp.einsum('qhd,khd->hqk', q, k), v)", "x, x, x",
        {"order": (2 * 2 * 2 * 256**2 * 16, 2 * 2 * 2 * 256 * 16**2)},
    ),
    "a grid for each": (
        "lambda i: jax.vmap(lambda i: jnp.zeros(9000).at[i].add(1.0))(i).sum(0)", "jnp.arange(64)",
        {"vmapped-sum": (10 * 64 * 9000, 10 * 9000)},
    ),
    "a grid for each, in a loop and twice": (
        "lambda i: jax.vmap(jax.vmap(lambda i: jax.lax.fori_loop(0, i, lambda k, grid: grid.at[i + k].add(1.0), "
        "jnp.zeros(9000))))(i[None]).sum(1)",
        "jnp.arange(64)", {"vmapped-sum": (10 * 64 * 9000, 10 * 9000)},
    ),
    "a triangle set for each": (
        "jax.vmap(lambda a: a.at[jnp.triu_indices(300, 1)].set(0.0))", "jnp.stack([a, b])",
        {"set-elements": (100 * N * (N - 1), 4 * N**2)},
    ),
    "gradient of a set triangle": (
        "jax.grad(lambda a, b: jnp.sum(a.at[jnp.tril_indices_from(a)].set(-9.0) ** 2 * b))", "a, b",
        {"set-elements": (100 * N * (N + 1), 2 * N**2)},
    ),
    "rows scaled": ("lambda a, v: jnp.diag(v) @ a", "a, v", {"diagonal": (2 * N**3, N**2)}),
    "columns scaled": ("lambda a, v: a @ jnp.diag(v)", "a, v", {"diagonal": (2 * N**3, N**2)}),
    "identity scaled": ("lambda a, v: (jnp.eye(len(v)) * v) @ a", "a, v", {"diagonal": (2 * N**3, N**2)}),
    "scaled in a gradient": (
        "jax.grad(lambda v, a: jnp.sum((jnp.diag(v) @ a) ** 2))", "v, a", {"diagonal": (2 * N**3, N**2)}
    ),
    "scaled for each": ("jax.vmap(lambda v, a: jnp.diag(v) @ a)", "a[:2], jnp.stack([a, b])", {"diagonal": (4 * N**3, 2 * N**2)}),
    "one column beside": ("lambda a, v: jnp.diag(v[:-1], 1) @ a", "a, v", {"banded": (2 * N**3, 2 * N**2)}),
    "three diagonals": (
        "lambda v: (jnp.diag(v) - jnp.diag(v[1:], -1) / 2 + 3 * jnp.diag(v[1:], 1).T) @ v", "v", {"banded": (2 * N**2, 4 * N)}
    ),
    "differences in a scan": (
        "stepped", "v", {"banded": (2 * N**2, 4 * N)},
    ),
    "equations": (
        "lambda v: jnp.linalg.solve(jnp.diag(v) + jnp.diag(v[1:], -1) + jnp.diag(v[1:], 1), v)", "v",
        {"tridiagonal-solved": (2 * N**2 + 2 * N**3 // 3, 10 * N)},
    ),
    "squared distances": ("lambda a, b: ((a[:20, None] - b) ** 2).sum(-1)", "a, b", {"distances": (200 * N**2, 40 * N**2)}),
    "norms under vmap": (
        "lambda a, b: jax.vmap(lambda x: jnp.linalg.norm(x - b, axis=-1))(a[:20])", "a, b",
        {"distances": (200 * N**2, 40 * N**2)},
    ),
    "gradient of a kernel": (
        "jax.grad(lambda a, b, v: jax.vmap(lambda x: jnp.exp(-(((x - b) / v) ** 2).sum(-1)))(a[:20]).sum(), (0, 2))",
        "a, b, v", {"distances": (200 * N**2, 40 * N**2)},
    ),
    "weighted outer products": (
        "lambda a, v: (a[:, :20, None] * a[:, None] * v[:, None, None]).sum(0)", "a, v",
        {"sum-of-outer": (200 * N**2, 40 * N**2)},
    ),
    "power": ("lambda a: (1 + a) ** -1.5", "a", {"costly-power": (30 * N**2, 2 * N**2)}),
    "float exponent": ("lambda a: jnp.power(a, 4.0)", "a", {"costly-power": (30 * N**2, 2 * N**2)}),
    "derivative of a root": ("jax.grad(lambda a: (a**0.5).sum())", "a", {"costly-power": (30 * N**2, 2 * N**2)}),
    "rows picked": ("lambda a, i: jax.nn.one_hot(i, 300) @ a", "a, i", {"one-hot": (2 * 50 * N**2, 50 * N)}),
    "rows of eye": ("lambda a, i: jnp.eye(300)[i] @ a", "a, i", {"one-hot": (2 * 50 * N**2, 50 * N)}),
    "diagonal": ("lambda a, b: jnp.diag(a @ b)", "a, b", {"diagonal-used": (2 * N**3, 2 * N**2)}),
    "variances": ("lambda a, b: jnp.sqrt(jnp.diag(a - b @ b.T))", "a, b", {"diagonal-used": (2 * N**3, 2 * N**2)}),
    "diagonal by einsum": ("lambda a, b: jnp.einsum('ii->i', a @ b)", "a, b", {"diagonal-used": (2 * N**3, 2 * N**2)}),
    "trace": ("lambda a, b: jnp.trace(a @ b)", "a, b", {"diagonal-used": (2 * N**3, 2 * N**2)}),
    "diagonals": ("jax.vmap(lambda a: jnp.diag(a @ a.T))", "jnp.stack([a, b])", {"diagonal-used": (4 * N**3, 4 * N**2)}),
    "last row": ("lambda a, b: (a @ b)[-1]", "a, b", {"part-used": (2 * N**3, 2 * N**2)}),
    "first columns of a layer": (
        "lambda a, b, v: jax.nn.relu(a @ b + v)[:, :30]", "a, b, v", {"part-used": (2 * N**3, 2 * N**2 * 30)}
    ),
    "one position": (
        "lambda x, w, n: jax.lax.dynamic_index_in_dim(x @ w, n, 1)", "jnp.ones((4, 50, 60)), jnp.ones((60, 70)), 3",
        {"part-used": (2 * 4 * 50 * 60 * 70, 2 * 4 * 60 * 70)},
    ),
    "last positions": (
        "lambda x, w, n: (x @ w)[jnp.arange(4), n]", "jnp.ones((4, 50, 60)), jnp.ones((60, 70)), i[:4]",
        {"part-used": (2 * 4 * 50 * 60 * 70, 2 * 4 * 60 * 70)},
    ),
    "row of a product in a loop": (
        "lambda a, b, v: jax.lax.fori_loop(0, 9, lambda n, x: x + ((a * x) @ b)[n], v)", "a, b, v",
        {"part-used": (2 * N**3, 2 * N**2)},
    ),
    "one position of causal attention": (
        "lambda s, w, ids, n: ids.at[:, n].set(attend(s, w, True)[:, n].argmax(-1))", "s, w, ids, 3",
        {
            "part-used": (2 * 4 * 64 * 32 * 90, 2 * 4 * 32 * 90),
            "position-used": (2 * 4 * 64 * (2 * 64 * 32 + 32 * 90), 2 * 4 * (2 * 64 * 32 + 32 * 90)),
        },
    ),
    "one position of all": (
        "lambda s, w, ids, n: ids.at[:, n].set(attend(s, w, False)[:, n].argmax(-1))", "s, w, ids, 3",
        {"part-used": (2 * 4 * 64 * 32 * 90, 2 * 4 * 32 * 90)},
    ),
    "prompt with its keys": (
        "lambda s, w, n: (jax.lax.dynamic_index_in_dim(attend(s, w, True), n, 1), s + 1)", "s, w, 3",
        {"part-used": (2 * 4 * 64 * 32 * 90, 2 * 4 * 32 * 90)},
    ),
    "fixed position of attention": ("lambda s, w: attend(s, w, True)[:, 0]", "s, w", {"part-used": (2 * 4 * 64 * 32 * 90, 2 * 4 * 32 * 90)}),
    "another position of each row": ("lambda s, w, i: attend(s, w, True)[jnp.arange(4), i[:4]]", "s, w, i", {"part-used": (2 * 4 * 64 * 32 * 90, 2 * 4 * 32 * 90)}),
    "large kernel": (
        "lambda a, k: jax.scipy.signal.convolve2d(a, k, mode='same')", "a, k",
        {"large-kernel": (2 * N**2 * 31**2, 3 * 5 * 330**2 * 17 // 2)},
    ),
    "resampled": (
        "lambda key, v: jax.random.categorical(key, v, shape=(500,))", "key, v",
        {"drawn-by-scores": (100 * 500 * N, 500 * 109 + 3 * N)},
    ),
    "resampled for each": (
        "jax.vmap(lambda key, v: jax.random.categorical(key, v, shape=(500,)))", "jax.random.split(key, 3), a[:3]",
        {"drawn-by-scores": (3 * 100 * 500 * N, 3 * (500 * 109 + 3 * N))},
    ),
    "real transform": ("jnp.fft.fft", "signal", {"real-transform": (5 * 2**14 * 14, 5 * 2**13 * 14)}),
    "convolution of prime length": (
        "lambda x, y: jnp.fft.irfft(jnp.fft.rfft(x, 40009) * jnp.fft.rfft(y[:10], 40009), 40009)", "signal, signal",
        {"transform-length": (4 * LONG, LONG)},
    ),
    "vectors that nothing reads": (
        "lambda a: (lambda u, s, vt: (u[:, :60] * s) @ vt)(*jnp.linalg.svd(a[:, :60]))", "a",
        {"full-decomposition": (4 * N**2 * 60 + 22 * 60**3, 6 * N * 60**2 + 20 * 60**3)},
    ),
    "real transform, and back": (
        "lambda x: jnp.fft.ifft(jnp.fft.fft(x) * 2).real", "signal", {"real-transform": (5 * 2**14 * 14, 5 * 2**13 * 14)}
    ),
}  # fmt: skip
NOT_FOUND = {
    "a triangle from a vector": ("lambda a, b: a.at[jnp.triu_indices(300)].set(b.ravel()[:45150])", "a, b"),
    "gradient of a triangle from a vector": (
        "jax.grad(lambda a, b: jnp.sum(a.at[jnp.triu_indices(300)].set(b.ravel()[:45150]) ** 2))", "a, b"
    ),
    "a triangle increased": ("lambda a: a.at[jnp.triu_indices(300)].add(1.0)", "a"),
    "rows set": ("lambda a, i: a.at[i].set(1.0)", "a, i"),
    "grids that are kept": ("lambda i: jax.vmap(lambda i: jnp.zeros(9000).at[i].add(1.0))(i)", "jnp.arange(64)"),
    "vector first": ("lambda a, b, v: a @ (b @ v)", "a, b, v"),
    "square": ("lambda a, b: a @ b @ a.T", "a, b"),
    "forces": (  # the differences themselves are used
        "lambda a: (lambda d: (d / (1 + (d**2).sum(-1, keepdims=True)) ** 3).sum(1))(a[:90, None] - a[:90])", "a"
    ),
    "gradient of forces": (
        "jax.grad(lambda a: (lambda d: (d / (1 + (d**2).sum(-1, keepdims=True)) ** 3).sum())(a[:90, None] - a[:90]))", "a"
    ),
    "absolute differences": ("lambda a, b: jnp.abs(a[:20, None] - b).sum(-1)", "a, b"),
    "squared errors": ("lambda a, v: ((a[None] - v[:20, None, None]) ** 2).sum(-1)", "a, v"),  # one number for each row
    "outer products": ("lambda a, b: (a[:, :20, None] * b[:, None]).sum(0)", "a, b"),  # XLA makes it a product
    "a factor of full size": (
        "lambda a, b: (a[:, :20, None] * b[:, None] * jnp.sin(a[:, :20, None] + b[:, None])).sum(0)", "a, b"
    ),
    "quick powers": ("lambda a: a**4 + a**-2 + a**3.0 + a**2.0 + a**0.5 + a**-1.0 + a**1.0", "a"),
    "odd powers": ("lambda a: a**0.7 + a ** (1 / 3) + a**100.0", "a"),  # no products or roots instead
    "integers": ("lambda i: (i * 3) ** 4.0 + i**-1.5", "i"),
    "unknown power": ("lambda a, v: a ** v[0] + 2.0**a", "a, v"),
    "also returned": ("lambda a, b, v: (a @ b @ v, a @ b)", "a, b, v"),
    "carried through a loop": (
        "lambda a, b, v: jax.lax.fori_loop(0, 9, lambda _, x: x - a @ b @ x, v)", "a, b, v"  # XLA computes a @ b once
    ),
    "diagonal added": ("lambda a, v: (a + jnp.diag(v)) @ v", "a, v"),
    "hessian": ("lambda v, a: jax.hessian(lambda v: jnp.sum(jnp.tanh(a @ jnp.sin(v)) ** 2))(v)", "v, a"),
    "jacobian": ("lambda v, a: jax.jacfwd(lambda v: a @ (v * v))(v)", "v, a"),
    "all directions": (
        "lambda v, a: jax.vmap(lambda e: jax.jvp(lambda v: a @ (v * v), (v,), (e,))[1])(jnp.eye(len(v)))", "v, a"
    ),
    "all linearized directions": ("lambda v, a: jax.vmap(jax.linearize(lambda v: a @ (v * v), v)[1])(jnp.eye(len(v)))", "v, a"),
    "one-hot columns": ("lambda a, i: jax.nn.one_hot(i, 300).T @ a[:50]", "a, i"),  # adds rows up
    "labels": ("lambda a, i: -jnp.sum(jax.nn.one_hot(i, 300) * jax.nn.log_softmax(a[:50]))", "a, i"),
    "whole also used": ("lambda a, b: (jnp.diag(a @ b), (a @ b).sum())", "a, b"),
    "convolution of another length": (
        "lambda x, y: jnp.fft.irfft(jnp.fft.rfft(x, 40000) * jnp.fft.rfft(y[:10], 40000), 40000)", "signal, signal"
    ),
    "spectrum of prime length": ("lambda x: jnp.abs(jnp.fft.rfft(x, 40009)) ** 2", "signal"),
    "all vectors": ("lambda a: jnp.linalg.svd(a[:, :60])[0]", "a"),
    "few vectors": ("lambda a: jnp.linalg.svd(a[:, :60], full_matrices=False)", "a"),
    "square matrix": ("lambda a: jnp.linalg.svd(a)[0][:, :60]", "a"),
    "complex": ("lambda x: jnp.fft.fft(jnp.exp(1j * x))", "signal"),
    "small kernel": ("lambda a, k: jax.scipy.signal.convolve2d(a, k[:3, :3], mode='same')", "a, k"),
    "channels": (
        "lambda x, k: jax.lax.conv_general_dilated(x, k, (1, 1), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC'))",
        "jnp.ones((1, 64, 64, 3)), jnp.ones((31, 31, 3, 3))",
    ),
    "one draw for each row": ("lambda key, a: jax.random.categorical(key, a)", "key, a"),
    "all but the diagonal": ("lambda a: jnp.where(jnp.eye(300, dtype=bool), -1e9, a @ a.T).max(axis=1)", "a"),
    "another diagonal": ("lambda a, b: jnp.diag(a @ b, k=1)", "a, b"),
    "diagonal of a batch": ("lambda a: jnp.diagonal(a @ a)", "jnp.ones((40, 40, 40))"),
    "rows of their own": ("lambda key, a: jax.random.categorical(key, a / 0.8, axis=-1)", "key, a"),
    "phases": ("lambda x: jnp.fft.ifft(jnp.exp(-1j * x) * jnp.fft.fft(x))", "signal"),
    "element of each row": ("lambda a, i: jnp.einsum('bv,bv->b', jax.nn.one_hot(i, 300), a[:50])", "a, i"),
    "observed part": ("lambda a: jnp.eye(2, 300) @ a @ jnp.eye(2, 300).T", "a"),
    "constants": ("lambda v: numbers.T @ numbers @ v", "v"),
    "stretched": (
        "lambda x, k: jax.lax.conv_transpose(x, k, (2, 2), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC'))",
        "jnp.ones((1, 64, 64, 1)), jnp.ones((31, 31, 1, 1))",
    ),
    "columns in shard_map": (
        "jax.shard_map(lambda a, b, x: x @ (a @ b), mesh=mesh, in_specs=(P(), P(), P('x')), out_specs=P('x'))",
        "a[:20, :20], b[:20, :20], jnp.ones((2, 9000, 20))",
    ),
    "many conditions": ("many", "a, b"),
    "many calls": ("calls", "a, b"),
    "equations of five diagonals": (
        "lambda v: jnp.linalg.solve(jnp.diag(v) + jnp.diag(v[2:], -2) + jnp.diag(v[2:], 2), v)", "v"
    ),
    "three diagonals and a corner": (
        "lambda v: (jnp.diag(v) + jnp.diag(v[1:], 1)).at[0, -1].set(1.0) @ v", "v"
    ),
    "product that a loop does not change": (
        "lambda a, b, v: jax.lax.fori_loop(0, 9, lambda n, x: x + (a @ b)[n], v)", "a, b, v"
    ),
    "outer product": ("lambda v: jnp.einsum('i,j->ij', v, v)[0]", "v"),
    "row of a pseudoinverse": ("lambda a: jnp.linalg.pinv(a)[0]", "a[:40, :40]"),
    "diagonal of a flat array": ("lambda a, b: (a @ b).ravel()[::301]", "a, b"),
    "split": ("lambda a, b: jnp.split(a @ b, 3)", "a, b"),
    "row and mean": ("lambda a, b: ((a @ b)[0], (a @ b).mean())", "a, b"),
    "row of what is normalized": ("lambda a, b: jax.nn.softmax(a @ b, axis=0)[-1]", "a, b"),
    "one element of each row": ("lambda a, b: (a @ b)[jnp.arange(300), jnp.arange(300)[::-1]]", "a, b"),
    "a row in each iteration": (
        "lambda a, b, v: jax.lax.fori_loop(0, 300, lambda n, x: x + jax.lax.dynamic_index_in_dim(c, n, 0, False), v)"
        " if (c := a @ b) is not None else v", "a, b, v"
    ),
    "rfft": ("jnp.fft.rfft", "signal"),
}  # fmt: skip
CODE = """
a, b = jnp.ones((300, 300)), jnp.ones((300, 300))
k, key = jnp.ones((31, 31)), jax.random.key(0)
import numpy as np
from jax.sharding import PartitionSpec as P
numbers, mesh = np.random.default_rng(0).normal(size=(300, 300)).astype("float32"), jax.sharding.Mesh(np.array(jax.devices()[:1]), ("x",))

def many(a, b):
    for i in range(40):  # in time that grows with 2**40 if each value is followed on every way
        a = jnp.where(a > i, a * 0.9, a * a)
    return jnp.diag(a @ b) if i < 0 else a @ b
std = jax.jit(lambda y: y / jnp.std(y, -1, keepdims=True))

@jax.jit
def layers(a, b):
    for _ in range(12):
        a = jnp.tanh(std(a) @ b) + a
    return a

calls = jax.value_and_grad(jax.jit(lambda a, b: jax.nn.log_softmax(layers(a, b)).sum()))

def stepped(v):
    d = jnp.diag(v) + jnp.diag(v[1:], 1)
    return jax.lax.scan(lambda x, _: (x + d @ x, None), v, None, 9)[0]

def attend(s, w, causal):
    scores = jnp.einsum("bqd,bkd->bqk", s, s)
    scores = jnp.where(jnp.tril(jnp.ones((64, 64), bool)), scores, -1e9) if causal else scores
    return (jax.nn.softmax(scores) @ s) @ w

ids, s, w = jnp.zeros((4, 64), int), jnp.ones((4, 64, 32)), jnp.ones((32, 90))
v, i, x, signal = jnp.ones(300), jnp.arange(50), jnp.ones((256, 2, 16)), jnp.ones(2**14)
"""


@pytest.mark.capture
@pytest.mark.subprocess
def test_the_forms_and_their_operations_are_found_and_nothing_else(lower, monkeypatch):
    monkeypatch.setattr("jaxscope.analysis.stablehlo.cheaper_forms.LEAST", 1)
    cases = {name: case[:2] for name, case in (FOUND | NOT_FOUND).items()}
    code = CODE + "".join(
        f"save({name!r}, jax.jit({f}), {arguments})\n" for name, (f, arguments) in cases.items()
    )
    found = {
        name: {form.kind: (form.operations, form.cheaper) for form in analyze(text).cheaper_forms}
        for name, text in lower(code).texts.items()
    }
    assert {name: forms for name, forms in found.items() if forms} == {
        n: forms for n, (*_, forms) in FOUND.items()
    }
