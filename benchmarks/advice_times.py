"""Measure the times that the pages of JX202, JX209, JX210, JX211, JX305, JX516 and JX604 state: the problem and the advice, side by side. Also
the time of ``init`` with and without jit (JX133, benchmarks/README.md).

python benchmarks/advice_times.py     # JX305 needs diffrax, JX133 flax
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp

TIMES = 7


def milliseconds(function: Callable[..., Any], *arguments: Any) -> float:
    """Return the median time of a call of the jitted ``function``, in milliseconds."""
    jitted = jax.jit(function)
    jax.block_until_ready(jitted(*arguments))
    spent = []
    for _ in range(TIMES):
        start = time.perf_counter()
        jax.block_until_ready(jitted(*arguments))
        spent.append(1e3 * (time.perf_counter() - start))
    return statistics.median(spent)


def sorts() -> None:
    scores = jax.random.normal(jax.random.key(0), (500, 4000))
    keys = jax.random.split(jax.random.key(1), 128)
    chosen = jax.vmap(lambda key: jax.random.choice(key, 4000, (20,), replace=False))
    drawn = jax.vmap(lambda key: jax.lax.top_k(jax.random.uniform(key, (4000,)), 20)[1])
    print(
        f"JX209  argsort[:, :20]  {milliseconds(lambda x: jnp.argsort(-x, axis=1)[:, :20], scores):8.1f} ms"
    )
    print(f"       top_k            {milliseconds(lambda x: jax.lax.top_k(x, 20)[1], scores):8.1f} ms")
    print(f"       choice           {milliseconds(chosen, keys):8.1f} ms")
    print(f"       uniform, top_k   {milliseconds(drawn, keys):8.1f} ms")


def jacobians() -> None:
    def residuals(z: jax.Array, q: jax.Array) -> jax.Array:
        a = jnp.linspace(0.0, 1.0, q.size)
        for _ in range(5):
            q = jnp.tanh(q * z[0] + z[1] * jnp.sin(a * z[2]) + z[3] * a**2) * z[4]
        return q

    z, q = jnp.ones(5), jnp.ones(2000)
    print(f"JX210  jacrev           {milliseconds(jax.jacrev(residuals), z, q):8.1f} ms")
    print(f"       jacfwd           {milliseconds(jax.jacfwd(residuals), z, q):8.1f} ms")


def forms() -> None:
    keys = jax.random.split(jax.random.key(0), 3)
    a, b, tokens = (
        jax.random.normal(keys[0], (1000, 1000)),
        jax.random.normal(keys[1], (1000, 1000)),
        jnp.arange(1000),
    )

    def many(key: jax.Array, logits: jax.Array) -> jax.Array:
        return jax.random.categorical(key, logits, shape=(1000,))

    def chosen(key: jax.Array, logits: jax.Array) -> jax.Array:
        return jax.random.choice(key, 1000, (1000,), p=jax.nn.softmax(logits))

    table, signals = jax.random.normal(keys[2], (5000, 64)), jax.random.normal(keys[2], (64, 65536))
    written: list[tuple[str, Callable[..., Any], str, Callable[..., Any], tuple[Any, ...]]] = [
        ("A @ B @ v", lambda a, b: a @ b @ a[0], "A @ (B @ v)", lambda a, b: a @ (b @ a[0]), (a, b)),
        ("diag(d) @ A", lambda a: jnp.diag(a[0]) @ a, "d[:, None] * A", lambda a: a[0][:, None] * a, (a,)),
        (
            "one_hot(i) @ A",
            lambda i, t: jax.nn.one_hot(i, 5000) @ t,
            "A[i]",
            lambda i, t: t[i],
            (tokens, table),
        ),
        (
            "diag(A @ B)",
            lambda a, b: jnp.diag(a @ b),
            "sum(A * B.T)",
            lambda a, b: jnp.sum(a * b.T, 1),
            (a, b),
        ),
        ("(A @ B)[-1]", lambda a, b: (a @ b)[-1], "A[-1] @ B", lambda a, b: a[-1] @ b, (a, b)),
        ("categorical", many, "choice", chosen, (keys[0], a[0])),
        ("fft(x)", jnp.fft.fft, "rfft(x)", jnp.fft.rfft, (signals,)),
    ]
    for name, one, instead, other, arguments in written:
        print(f"JX211  {name:16} {milliseconds(one, *arguments):8.1f} ms", end="")
        print(f"   {instead:16} {milliseconds(other, *arguments):8.1f} ms")


def sums() -> None:
    keys = jax.random.split(jax.random.key(0), 3)
    x, y = jax.random.normal(keys[0], (2, 1000, 8))
    far, away = jax.random.normal(keys[1], (2, 1000, 64))
    rows, others = jax.random.normal(keys[2], (2, 512, 300))
    w = rows[:, 0]

    def differences(x: jax.Array, y: jax.Array) -> jax.Array:
        return ((x[:, None, :] - y[None, :, :]) ** 2).sum(-1)

    def products(x: jax.Array, y: jax.Array) -> jax.Array:
        return (x**2).sum(1)[:, None] + (y**2).sum(1) - 2 * x @ y.T

    def gradient(distances: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
        return jax.grad(lambda x, y: jnp.exp(-distances(x, y)).sum())

    def outer(x: jax.Array, y: jax.Array, w: jax.Array) -> jax.Array:
        return (x[:, :, None] * y[:, None, :] * w[:, None, None]).sum(0)

    def product(x: jax.Array, y: jax.Array, w: jax.Array) -> jax.Array:
        return (x * w[:, None]).T @ y

    for name, one, other, arguments in [
        ("distances", differences, products, (x, y)),
        ("their gradient", gradient(differences), gradient(products), (far, away)),
        ("sum of three", outer, product, (rows, others, w)),
    ]:
        print(f"JX211  {name:16} {milliseconds(one, *arguments):8.1f} ms", end="")
        print(f"   with a product   {milliseconds(other, *arguments):8.1f} ms")


def deposits() -> None:
    cells, rays = 48, 256
    directions = jax.random.normal(jax.random.key(0), (rays, 3))

    def taken(position: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(jnp.clip(position.astype(int), 0, cells - 1).T)

    def of_one_ray(direction: jax.Array) -> jax.Array:
        def move(_: int, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            position, grid = state
            return position + 0.5 * direction, grid.at[taken(position)].add(1.0)

        start = jnp.full(3, cells / 2), jnp.zeros((cells, cells, cells))
        return jax.lax.fori_loop(0, 6, move, start)[1]

    def own_grids(directions: jax.Array) -> jax.Array:
        return jax.vmap(of_one_ray)(directions).sum(0)

    def one_grid(directions: jax.Array) -> jax.Array:
        def move(_: int, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            positions, grid = state
            return positions + 0.5 * directions, grid.at[taken(positions)].add(1.0)

        start = jnp.full((rays, 3), cells / 2), jnp.zeros((cells, cells, cells))
        return jax.lax.fori_loop(0, 6, move, start)[1]

    print(f"JX211  a grid per ray   {milliseconds(own_grids, directions):8.1f} ms", end="")
    print(f"   one grid         {milliseconds(one_grid, directions):8.1f} ms")


def powers() -> None:
    x = jnp.linspace(0.1, 2, 4_000_000)
    pairs: list[tuple[str, Callable[..., Any], str, Callable[..., Any]]] = [
        ("x ** 1.5", lambda x: x**1.5, "x * sqrt(x)", lambda x: x * jnp.sqrt(x)),
        ("x ** -1.5", lambda x: x**-1.5, "rsqrt(x) / x", lambda x: jax.lax.rsqrt(x) / x),
        ("x ** 4.0", lambda x: x**4.0, "x ** 4", lambda x: x**4),
    ]
    for name, one, instead, other in pairs:
        print(
            f"JX211  {name:16} {milliseconds(one, x):8.1f} ms   {instead:16} {milliseconds(other, x):8.1f} ms"
        )


def draws() -> None:
    shapes = [(256, 256)] * 4 + [(256, 1024), (1024, 256), (256,)]

    def parameters(key: jax.Array) -> list[jax.Array]:
        keys = iter(jax.random.split(key, 12 * len(shapes)))
        return [jax.random.normal(next(keys), shape) for _ in range(12) for shape in shapes]

    for name, create in (("jit", jax.jit(parameters)), ("without jit", parameters)):
        start = time.process_time()
        jax.block_until_ready(create(jax.random.key(0)))
        print(f"JX202  84 draws, {name:11} {time.process_time() - start:6.1f} s of processor time")


def loops() -> None:
    """Compare unrolled loops of small iterations with the same loops as a fori_loop."""
    shifts = jnp.array([(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)])

    def stream(grid: jax.Array, loop: Callable[..., Any]) -> Any:
        def move(i: Any, moved: jax.Array) -> jax.Array:
            return moved.at[:, :, i].set(jnp.roll(grid[:, :, i], shifts[i], (0, 1)))

        return loop(0, 9, move, grid)

    def leapfrog(state: jax.Array, loop: Callable[..., Any]) -> Any:
        def move(i: Any, state: jax.Array) -> jax.Array:
            position, speed = state
            position = position + 0.01 * speed
            return jnp.stack([position, speed - 0.01 * jnp.tanh(matrix @ position)])

        return loop(0, 50, move, state)

    def unrolled(first: int, last: int, body: Callable[..., Any], state: Any) -> Any:
        for i in range(first, last):
            state = body(i, state)
        return state

    matrix = jax.random.normal(jax.random.key(0), (8, 8))
    for name, step, start in (
        ("9 writes into a grid", stream, jnp.ones((300, 120, 9))),
        ("50 leapfrog steps of 8 numbers", leapfrog, jnp.ones((2, 8))),
    ):
        spent = []
        for loop in (unrolled, jax.lax.fori_loop):
            jitted = jax.jit(lambda state, step=step, loop=loop: step(state, loop))
            began = time.process_time()
            jax.block_until_ready(jitted(start))
            first = time.process_time() - began
            spent.append(f"{first:.2f} s at first, {milliseconds(jitted, start):.3f} ms for a call")
        print(f"JX202  {name}: unrolled {spent[0]}; fori_loop {spent[1]}")


def initializations() -> None:
    """Compare ``init`` of two Flax models with and without jit, in processor time."""
    if importlib.util.find_spec("flax") is None:
        print("JX133  flax is not installed")
        return
    import flax.linen as nn

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x: jax.Array) -> jax.Array:
            x = x + nn.MultiHeadDotProductAttention(4)(nn.LayerNorm()(x))
            return x + nn.Dense(64)(nn.gelu(nn.Dense(256)(nn.LayerNorm()(x))))

    blocks = nn.Sequential([nn.Dense(64), *(Block() for _ in range(6))])
    image = [nn.Conv(16, (3, 3)), nn.relu, lambda x: x.reshape(1, -1), nn.Dense(64), nn.relu, nn.Dense(10)]
    alike = [nn.Conv(width, (3, 3)) for width in (32, 64, 128) for _ in range(6)]
    different = [nn.Conv(width, (3, 3)) for width in (32, 64, 96, 128, 160, 192)]
    for name, model, x in (
        ("a small CNN", nn.Sequential(image), jnp.ones((1, 16, 16, 1))),
        ("6 transformer blocks", blocks, jnp.ones((2, 17, 48))),
        ("6 different convolutions", nn.Sequential(different), jnp.ones((1, 32, 32, 3))),
        ("18 convolutions of 3 widths", nn.Sequential(alike), jnp.ones((1, 32, 32, 3))),
    ):
        spent = []
        for init in (model.init, jax.jit(model.init)):
            jax.clear_caches()
            began = time.process_time()
            jax.block_until_ready(init(jax.random.key(0), x))
            spent.append(time.process_time() - began)
        print(f"JX133  init of {name}: {spent[0]:.1f} s of processor time, with jit {spent[1]:.1f} s")


def lists() -> None:
    """Compare ways to join 32 JAX scalars, which are operations outside jit."""
    items = [jnp.argmax(jnp.arange(4) * i) for i in range(32)]
    for name, join in (("asarray", jnp.asarray), ("stack", jnp.stack)):
        jax.block_until_ready(join(items))
        start = time.perf_counter()
        for _ in range(300):
            jax.block_until_ready(join(items))
        print(f"JX604  jnp.{name:9} of 32 scalars {1e6 * (time.perf_counter() - start) / 300:6.0f} us")


def triangles() -> None:
    """Compare ways to set the triangle above the diagonal of 64 matrices to one number."""
    x = jax.random.normal(jax.random.key(0), (64, 128, 128))
    above = jnp.triu(jnp.ones((128, 128), bool), 1)

    def scatter(x: jax.Array) -> jax.Array:
        return jax.vmap(lambda m: m.at[jnp.triu_indices(128, 1)].set(-1e9))(x)

    def mask(x: jax.Array) -> jax.Array:
        return jnp.where(above, -1e9, x)

    print(
        f"JX211  .at[triu_indices] {milliseconds(scatter, x):8.2f} ms, with a mask {milliseconds(mask, x):.2f} ms"
    )


def stored() -> None:
    s = jax.random.normal(jax.random.key(0), (3200, 220))

    def outer() -> jax.Array:
        return jax.vmap(jnp.outer)(s, s).mean(0)

    def product() -> jax.Array:
        return s.T @ s / s.shape[0]

    for name, one in (("mean of outer products", outer), ("product", product)):
        jax.block_until_ready(one())
        start = time.process_time()
        for _ in range(7):
            jax.block_until_ready(one())
        print(f"JX516  7 times, {name:22} {time.process_time() - start:6.1f} s of processor time")


def tolerances() -> None:
    import diffrax
    import numpy as np
    from scipy.integrate import solve_ivp

    def slope(t: Any, y: Any, sin: Callable[[Any], Any]) -> list[Any]:
        return [y[1], -y[0] * (1 + 0.1 * sin(t))]

    exact = solve_ivp(lambda t, y: slope(t, y, np.sin), (0, 20), [1.0, 0.0], rtol=1e-12, atol=1e-12).y[:, -1]
    for rtol in (1e-6, 1e-7, 1e-8, 1e-9):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, args: jnp.stack(slope(t, y, jnp.sin))),
            diffrax.Tsit5(),
            0.0,
            20.0,
            0.05,
            jnp.array([1.0, 0.0]),
            stepsize_controller=diffrax.PIDController(rtol=rtol, atol=rtol),
            max_steps=100_000,
        )
        steps, rejected = solution.stats["num_steps"], solution.stats["num_rejected_steps"]
        error = np.abs(np.asarray(solution.ys[0]) - exact).max()
        print(f"JX305  rtol={rtol:g}  {steps} steps, {rejected} of them rejected, error {error:.1e}")


if __name__ == "__main__":
    print(f"JAX {jax.__version__}, {jax.default_backend()}, medians of {TIMES} calls")
    sorts()
    jacobians()
    forms()
    sums()
    deposits()
    powers()
    draws()
    loops()
    initializations()
    lists()
    triangles()
    stored()
    if importlib.util.find_spec("diffrax") is not None:
        tolerances()
