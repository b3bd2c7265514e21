"""Flax NNX: a small MLP fitted with `nnx.Optimizer` and a jitted train step."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx


class MLP(nnx.Module):
    def __init__(self, din: int, dmid: int, dout: int, *, rngs: nnx.Rngs):
        self.linear = nnx.Linear(din, dmid, rngs=rngs)
        self.dropout = nnx.Dropout(rate=0.1, rngs=rngs)
        self.bn = nnx.BatchNorm(dmid, rngs=rngs)
        self.linear_out = nnx.Linear(dmid, dout, rngs=rngs)

    def __call__(self, x):
        x = nnx.gelu(self.dropout(self.bn(self.linear(x))))
        return self.linear_out(x)


def loss_fn(model, x, y):
    return ((model(x) - y) ** 2).mean()


@nnx.jit
def train_step(model, optimizer, x, y):
    loss, grads = nnx.value_and_grad(loss_fn)(model, x, y)
    optimizer.update(model, grads)
    return loss


@nnx.jit
def eval_step(model, x, y):
    return loss_fn(model, x, y)


def main():
    model = MLP(2, 16, 1, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
    x = jax.random.normal(jax.random.key(1), (64, 2))
    y = x[:, :1] * x[:, 1:]

    model.train()
    first = loss = train_step(model, optimizer, x, y)
    for _ in range(60):
        loss = train_step(model, optimizer, x, y)
    last = train_step(model, optimizer, x[:10], y[:10])

    model.eval()
    print(f"nnx: first {first:.3f} falls {bool(loss < first)} short batch finite {bool(jnp.isfinite(last))}")
    print(f"nnx: eval below first {bool(eval_step(model, x, y) < first)}")


if __name__ == "__main__":
    main()
